"""A client of any Kubernetes-style API: what client-go is to Go.

``kubeconfig`` reads the address of a cluster and the credentials of a user, ``rest_config`` resolves them,
``transport`` sends one HTTP request, ``rest`` is the asynchronous client of any kind and ``sync`` a synchronous face
over it. ``watch``, ``informer``, ``workqueue`` and ``leader_election`` are what controllers are made of. All failures
are those of ``errors``.

The package contains no kind, no product and no environment variable of one: the caller passes a user agent. It imports
nothing of ours but pure packages. Reading a kubeconfig does not import the HTTP library.
"""
