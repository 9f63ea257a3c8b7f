"""Version v1 of ``authorization.k8s.io``: reviews of access and of rules."""

VERSION = "v1"
