"""A generic Kubernetes-style API server.

It names no kind, path, variable or user agent of a product: a ``Product`` brings them.
"""
