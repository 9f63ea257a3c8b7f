"""The host cluster: the kube-apiserver behind whose aggregation layer this server runs.

``in_cluster`` finds it from within a pod, ``client`` calls it, ``authentication_config`` reads its configuration of
users and front proxies, ``config_watch`` keeps that current, ``probe`` checks that it answers reviews. The package
knows nothing of serving, of storage and of our own resources; the meaning of a review is that of ``authn`` and
``authz``.
"""
