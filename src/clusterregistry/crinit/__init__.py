"""``crinit``: deploys a registry into a host cluster, repairs and upgrades it there, and removes it.

``options`` declares the flags, ``settings_from_flags`` turns them into checked ``settings``, ``manifests`` are pure
functions from settings to objects, ``credentials`` makes certificates and tokens or finds them again, ``host`` calls
the host cluster and edits the user's kubeconfig, and ``commands`` put these together in steps.

The package is a client like any other: it must not import the server's storage, registry or serving.
"""
