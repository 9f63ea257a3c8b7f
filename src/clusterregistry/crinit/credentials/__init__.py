"""Secrets of a registry: authorities, certificates and tokens. ``material`` holds them, ``issuance`` makes them.

Existing credentials are kept: a second run for the same registry changes none. Nothing here calls a host cluster.
"""
