"""Our server, driven by unmodified public clients: client-go, controller-runtime and kopf. Run by ``make clients``.

``python -m tests.system.clients`` builds and installs them into the cache outside of the clone. Where they are not
there, the tests are skipped and say what is missing. ``CLIENTS_AGAINST=kube-apiserver make clients`` runs the same
tests against a real kube-apiserver, which shows that they ask for nothing that it does not do.
"""
