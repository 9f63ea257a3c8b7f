"""The ``clusterregistry.k8s.io`` group: one package a version, and nothing that stores or serves its types."""

GROUP = "clusterregistry.k8s.io"
