"""Roles and bindings, in namespaces and without: their resources, and the controllers that act on them.

``policy_informer`` keeps the policy of ``authz.rbac`` in step with the stored objects, ``bootstrap`` creates and
repairs the default ones, ``controller`` runs both and aggregates the rules of ClusterRoles, and ``escalation`` refuses
writes that would grant more than the writer has. Nothing here authorizes a request: ``authz`` does.
"""
