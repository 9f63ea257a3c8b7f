"""The API group ``authorization.k8s.io``: questions about who may do what. Types and validation only."""

GROUP = "authorization.k8s.io"
