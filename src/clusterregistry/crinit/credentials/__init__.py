"""What is secret: authorities, certificates and tokens. ``material`` holds it, ``making`` makes what is missing.

What is there is kept: a second run for the same registry gives nobody new credentials. Nothing here talks to a host.
"""
