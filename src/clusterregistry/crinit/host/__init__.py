"""The host cluster and the way to it: ``kubeconfigs`` reads, ``kubeconfig_files`` writes, ``client`` calls.

Calls are synchronous, on the standard library's HTTP client: crinit does one thing after the other, and waits. The
transport of ``apiserver.webhooks`` is for servers (asynchronous, JSON in and out, errors without their text), and its
files may not hold what a user's kubeconfig may, such as commands that give credentials.
"""
