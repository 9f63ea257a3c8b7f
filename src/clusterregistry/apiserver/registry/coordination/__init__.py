"""The resource of the group ``coordination.k8s.io``: Lease."""
