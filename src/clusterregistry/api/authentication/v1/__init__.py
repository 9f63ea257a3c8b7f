"""Version v1 of ``authentication.k8s.io``."""

VERSION = "v1"
