"""Version v1 of ``authorization.k8s.io``, the kinds that a server without namespaces can answer."""

VERSION = "v1"
