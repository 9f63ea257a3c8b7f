"""What crinit does: one command a module, each a row of steps that tell what they did and how long it took.

Modules here decide and wait; what objects look like is in ``manifests``, and how they travel in ``host``.
"""
