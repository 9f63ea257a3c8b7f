"""Real member clusters, and what observes them: controllers and agents against kube-apiservers with nodes.

A member is a kube-apiserver, a kube-controller-manager and a kube-scheduler; one etcd serves them all. Nodes and pods
are played: see ``played_nodes``.
"""
