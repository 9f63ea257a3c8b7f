"""Searches the path from a client's certificate to a trusted certificate authority.

TLS has verified the client against all authorities together: signatures, purposes, weak algorithms, name constraints.
It does not report which authority the path led to, so each authenticator searches again, among its own authorities.
The search relies on nothing of TLS: every step is a verified signature by a valid certificate that may sign.
Decision 17 says why the search is not that of cryptography.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID

T = TypeVar("T", bound=x509.ExtensionType)

MAX_SIGNATURES = 32
"""Signatures verified for one client. Chains are short, unless they are made to cost time."""

_CLIENT_USES = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})


class RefusedError(Exception):
    """A certificate is refused. The message is the reason, for the log."""


class Search:
    """Searches a path from a leaf through the client's other certificates to one of the anchors."""

    def __init__(self, anchors: Sequence[x509.Certificate], others: Sequence[x509.Certificate], *, now: float) -> None:
        self._anchors = anchors
        self._others = others
        self._now = dt.datetime.fromtimestamp(now, dt.UTC)
        self._signatures_left = MAX_SIGNATURES

    def path(self, leaf: x509.Certificate) -> list[x509.Certificate]:
        """The leaf, the intermediates and the anchor. Raises RefusedError."""
        self._require_current(leaf)
        if not meant_for_clients(leaf):
            raise RefusedError("its extended key usage does not allow client authentication")
        if leaf in self._anchors:  # as in Go: a certificate among the authorities is trusted itself
            return [leaf]
        found = self._upwards([leaf])
        if found is None:
            raise RefusedError("no authority that counts here has signed it, or an intermediate certificate is missing")
        return found

    def _require_current(self, leaf: x509.Certificate) -> None:
        if self._now > leaf.not_valid_after_utc:
            raise RefusedError(f"it ended at {leaf.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}")
        if self._now < leaf.not_valid_before_utc:
            raise RefusedError(f"it begins at {leaf.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}")

    def _upwards(self, path: list[x509.Certificate]) -> list[x509.Certificate] | None:
        for anchor in self._issuers(path, self._anchors):
            return [*path, anchor]
        for other in self._issuers(path, self._others):
            # Version 1 has no basic constraints: acceptable for a configured authority, not for an intermediate.
            if other not in path and other.version is not x509.Version.v1:
                found = self._upwards([*path, other])
                if found is not None:
                    return found
        return None

    def _issuers(
        self, path: list[x509.Certificate], candidates: Sequence[x509.Certificate]
    ) -> Iterator[x509.Certificate]:
        last = path[-1]
        for candidate in candidates:
            if candidate.subject != last.issuer or not self._is_current(candidate):
                continue
            if may_sign(candidate, below=len(path) - 1) and self._signed(last, candidate):
                yield candidate

    def _is_current(self, certificate: x509.Certificate) -> bool:
        return certificate.not_valid_before_utc <= self._now <= certificate.not_valid_after_utc

    def _signed(self, certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
        if not self._signatures_left:
            raise RefusedError("the certificates that came with it lead nowhere in reasonable time")
        self._signatures_left -= 1
        try:
            certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            return False
        return True


def may_sign(certificate: x509.Certificate, *, below: int) -> bool:
    """Whether a certificate may sign client certificates, with so many intermediates ``below`` it."""
    constraints = _extension(certificate, x509.BasicConstraints)
    if constraints is None:
        # Basic constraints exist from version 3 on.
        return certificate.version is x509.Version.v1
    if not constraints.ca or (constraints.path_length is not None and constraints.path_length < below):
        return False
    usage = _extension(certificate, x509.KeyUsage)
    return (usage is None or usage.key_cert_sign) and meant_for_clients(certificate)


def meant_for_clients(certificate: x509.Certificate) -> bool:
    usages = _extension(certificate, x509.ExtendedKeyUsage)
    return usages is None or not _CLIENT_USES.isdisjoint(usages)


def period(path: Sequence[x509.Certificate]) -> tuple[float, float]:
    """The period in which all certificates of a path are valid."""
    since = max(each.not_valid_before_utc for each in path)
    until = min(each.not_valid_after_utc for each in path)
    return since.timestamp(), until.timestamp()


def _extension(certificate: x509.Certificate, kind: type[T]) -> T | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
