"""Authorization: decides whether a user may do what a request asks.

A port (``interface``), one implementation a file (``rbac`` a package), ``union``, which asks them in order, and
``modes``, which makes the union that ``--authorization-mode`` names. Authorizers decide from attributes alone: they
never see bodies or objects, and they raise nothing.
"""
