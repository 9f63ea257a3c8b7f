"""``crinit``: deploys a registry into a host cluster, looks after it there, and removes it.

``flags`` reads the command line, ``settings`` checks it, ``manifests`` are pure functions from settings to objects,
``credentials`` makes what is secret or finds it again, ``host`` talks to the host cluster and to the user's
kubeconfig, and ``commands`` put these together in steps.

The package is a client like any other: it must not import the server's storage, registry or serving.
"""
