"""The API group ``authentication.k8s.io``: questions about who somebody is. Types only."""

GROUP = "authentication.k8s.io"
