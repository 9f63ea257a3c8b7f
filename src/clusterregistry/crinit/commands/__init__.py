"""The commands of crinit, one a module: each is a sequence of steps that print their result and duration.

These modules decide and wait; ``manifests`` has the objects, and ``host`` calls the host cluster.
"""
