"""From a client's certificate to an authority that we trust, step by step.

TLS has verified the client against all authorities together: signatures, purposes, weak algorithms, name constraints.
It does not tell for which authority that holds, so each group of authorities is asked here. Stands on its own
otherwise: every step upwards is a checked signature of somebody who may sign, at a time when they may.
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
"""Signatures checked for one client. Chains are short; one made to keep us busy is not."""

_CLIENT_USES = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})


class RefusedError(Exception):
    """A certificate that does not count; the message says why, for the log."""


class Search:
    """Looks for one way from a leaf over the certificates that came with it to one of the anchors."""

    def __init__(self, anchors: Sequence[x509.Certificate], others: Sequence[x509.Certificate], *, now: float) -> None:
        self._anchors = anchors
        self._others = others
        self._now = dt.datetime.fromtimestamp(now, dt.UTC)
        self._signatures_left = MAX_SIGNATURES

    def path(self, leaf: x509.Certificate) -> list[x509.Certificate]:
        """The leaf, those between, and the anchor. Raises RefusedError."""
        self._require_current(leaf)
        if not meant_for_clients(leaf):
            raise RefusedError("its extended key usage does not allow client authentication")
        if leaf in self._anchors:  # as in Go: who is named among the authorities needs nobody else's word
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
            # Only an authority that we trust may be so old that it cannot say what it is.
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
    """Whether it is an authority, and one that allows so many authorities ``below`` it. For clients' certificates."""
    constraints = _extension(certificate, x509.BasicConstraints)
    if constraints is None:
        # Before version 3 there was no way to say so.
        return certificate.version is x509.Version.v1
    if not constraints.ca or (constraints.path_length is not None and constraints.path_length < below):
        return False
    usage = _extension(certificate, x509.KeyUsage)
    return (usage is None or usage.key_cert_sign) and meant_for_clients(certificate)


def meant_for_clients(certificate: x509.Certificate) -> bool:
    usages = _extension(certificate, x509.ExtendedKeyUsage)
    return usages is None or not _CLIENT_USES.isdisjoint(usages)


def period(path: Sequence[x509.Certificate]) -> tuple[float, float]:
    """From when until when all of a path are valid."""
    since = max(each.not_valid_before_utc for each in path)
    until = min(each.not_valid_after_utc for each in path)
    return since.timestamp(), until.timestamp()


def _extension(certificate: x509.Certificate, kind: type[T]) -> T | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
