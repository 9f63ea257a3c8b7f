"""The ``events.k8s.io`` group: one package a version, and nothing that stores or serves it."""

GROUP = "events.k8s.io"
