"""The one error of this package."""

from __future__ import annotations


class CertificateError(Exception):
    """A certificate, key or kubeconfig that cannot be used or made; ``remedy`` says what to do."""

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy
