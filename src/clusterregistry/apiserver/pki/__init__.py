"""Certificates of the server: its authority, its serving certificate, the administrator's kubeconfig.

``ensuring`` is the entry: it makes what is missing, renews what ends soon, and otherwise changes nothing.
``cryptography`` is imported only when something has to be made or looked at anew; ``tls`` builds the server's TLS
context, ``handshake`` has a word for clients that it refuses, ``own_certificate`` knows by which authorities clients
verify a certificate of the operator's. Every failure is a ``CertificateError`` that says what to do.

This package writes only the files that ``layout`` names. It must not know options, requests or storage.
"""
