"""Authorization: decides whether a user may do what a request asks.

``interface`` has the ports, ``rbac`` and ``webhook`` are authorizers, ``union`` calls several in order, and ``modes``
makes the union that ``--authorization-mode`` names. ``visible_names`` decides for filtered lists and watches, and
``forbidden`` makes the error of a refusal. Authorizers decide from attributes alone: they never see bodies or objects,
and they raise nothing.
"""
