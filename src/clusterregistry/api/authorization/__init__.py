"""The API group ``authorization.k8s.io``: reviews of access. Types and validation only."""

GROUP = "authorization.k8s.io"
