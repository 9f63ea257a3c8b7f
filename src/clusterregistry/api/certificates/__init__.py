"""The ``certificates.k8s.io`` group: one package a version, and nothing that stores, serves or signs."""

GROUP = "certificates.k8s.io"
