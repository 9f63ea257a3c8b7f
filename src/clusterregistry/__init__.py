"""The cluster registry: a Kubernetes-style API server for a list of clusters.

The packages below are laid out in the order in which a request meets them:
``serving`` → ``authn``/``authz`` → ``handlers`` → ``registry`` → ``storage``.
``apis`` holds the types, ``catalog`` says which of them are served, ``cli`` starts it all.
"""

__version__ = "0.1.0"
