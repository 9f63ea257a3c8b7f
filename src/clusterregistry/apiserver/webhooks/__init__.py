"""Calls of other servers over HTTPS: webhooks, and the issuers of tokens.

``config_file`` reads kube-apiserver's webhook configuration files, ``webhook`` calls webhooks and issuers on the
project's client (``clusterregistry.client``), ``call_cache`` keeps calls few, ``health_state`` logs whether a server
answers. The package knows nothing of tokens, users and decisions: those are of ``authn`` and
``authz``. ``webhook`` imports the HTTP library: import it only where such a server is configured.
"""
