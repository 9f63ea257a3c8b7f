"""The ``rbac.authorization.k8s.io`` group: one package a version, and nothing that stores, serves or evaluates it."""

GROUP = "rbac.authorization.k8s.io"
