"""The cluster registry: a Kubernetes-style API server for a list of clusters.

``apiserver`` is a library for API servers, ``api`` holds the types of the kinds, and ``registry`` is the product made
of both. docs/architecture/overview.md draws the packages and the imports that are allowed.
"""

__version__ = "0.1.0"
