"""Commands for people who work with a registry, each a client like any other: none knows how the server works.

``import`` brings clusters in, from kubeconfigs or from the file that ``export`` writes. What is to be written is
planned and tried as a whole first (``import_plan``): only then does a command write.

``kubeconfig`` brings clusters back into the kubeconfig of a user, whose own entries ``kubeconfig_merge`` keeps.
``user`` makes users with client certificates.
"""
