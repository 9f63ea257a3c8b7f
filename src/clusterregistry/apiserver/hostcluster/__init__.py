"""The host cluster: the kube-apiserver behind whose aggregation layer this server runs.

``pods`` and ``access`` find it, ``calling`` talks to it, ``authentication_config`` reads what it says of users and
front proxies, ``following`` keeps that current, ``probing`` knows at any time whether it answers. What an answer means
for a request is ``authn``'s and ``authz``'s business; the package knows nothing of serving, of storage and of our own
resources.
"""
