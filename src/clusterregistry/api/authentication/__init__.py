"""The API group ``authentication.k8s.io``: reviews of users and tokens. Types only."""

GROUP = "authentication.k8s.io"
