"""Certificates of the server: its authority, its serving certificate, the administrator's kubeconfig.

``provision`` is the entry point: it makes missing certificates, renews those that end soon, and changes nothing else.
``cryptography`` is imported only to issue or inspect a certificate. ``tls`` builds the server's TLS context and answers
clients whose handshake fails, ``live_tls`` reloads changed files, ``own_certificate`` finds the authorities by which
clients verify a certificate of the operator's. Every failure is a ``CertificateError`` with a remedy.

This package writes only the files of ``files.Layout``. It must not know options, requests or storage.
"""
