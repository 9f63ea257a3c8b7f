"""Calls that this server makes to others over HTTPS: webhooks, and the issuers of tokens.

``config_file`` reads where a webhook is, ``transport`` exchanges one request for one answer, ``calling`` asks a webhook
with retries, ``questions`` and ``answers`` see to it that nobody is asked twice. The package knows nothing of tokens,
users and decisions: what is asked, and what an answer means, is ``authn``'s and ``authz``'s business. The HTTP client
(aiohttp) is imported when the first transport is made, since most servers call nobody.
"""
