"""The server's own controllers: what kube-controller-manager does for objects, inside of the server.

``run`` starts them. Each one begins with everything that is stored and acts on the present state, so that a restart in
the middle does no harm; each write is on a condition, so that several replicas may act at once. A controller knows
stores and storage. It knows neither requests nor users.
"""
