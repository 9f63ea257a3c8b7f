"""The host cluster: ``client`` calls it, ``answers`` explains failures, ``kubeconfig_files`` changes a kubeconfig.

Reading kubeconfigs and HTTP are those of ``clusterregistry.client``.
"""
