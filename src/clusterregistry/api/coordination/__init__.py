"""The ``coordination.k8s.io`` group: one package a version, and nothing that stores or serves it."""

GROUP = "coordination.k8s.io"
