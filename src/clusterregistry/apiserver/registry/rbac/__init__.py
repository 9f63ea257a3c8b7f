"""What makes ClusterRoles and ClusterRoleBindings more than data.

``feeding`` keeps the policy, from which requests are authorized, in step with what is stored; ``escalation`` refuses
writes that would give away more than the writer has; ``default_objects`` are made and repaired by ``ensuring``;
``aggregating`` collects the rules of roles that are made of others. Nothing here decides on a request: that is
``authz``.
"""
