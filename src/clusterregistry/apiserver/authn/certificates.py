"""Verification of client certificates against certain authorities: what all authenticators by certificate share."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from clusterregistry.apimachinery.bounded_cache import BoundedCache
from clusterregistry.apiserver.authn.interface import CredentialRefused
from clusterregistry.apiserver.http.transport import MAX_CHAIN

if TYPE_CHECKING:
    from cryptography import x509

T = TypeVar("T")
Chain = tuple[bytes, ...]

MAX_CACHED = 4096

REFUSED_SECONDS = 60.0
"""Seconds after which a refused certificate is verified again: it may not have been valid yet."""

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

log = logging.getLogger(__name__)


def certificates_in(pem: str) -> set[bytes]:
    """The certificates of a PEM file as DER, without malformed blocks."""
    found = set()
    for block in _BLOCK.findall(pem):
        with contextlib.suppress(ValueError):
            found.add(ssl.PEM_cert_to_DER_cert(block))
    return found


class Anchors:
    """An immutable set of authorities. Parsed on first use, because the parser is a slow import."""

    def __init__(self, pem: str) -> None:
        self._pem = pem

    @cached_property
    def certificates(self) -> list[x509.Certificate]:
        from cryptography import x509  # noqa: PLC0415 - 60 ms that only servers with certificate users pay

        parsed = []
        for block in _BLOCK.findall(self._pem):
            try:
                parsed.append(x509.load_der_x509_certificate(ssl.PEM_cert_to_DER_cert(block)))
            except ValueError as error:
                log.warning("a certificate authority is left out, since it cannot be read: %s", error)
        return parsed


class Authorities:
    """The authorities for one purpose. They are replaced as a whole while the server runs."""

    def __init__(self, pem: str = "") -> None:
        self.current = Anchors(pem)

    def replace(self, pem: str) -> None:
        """Replaces the authorities, with immediate effect on open connections."""
        self.current = Anchors(pem)


@dataclass(frozen=True, slots=True)
class _Found(Generic[T]):
    """The result of a verification by some anchors, and the period in which it is valid."""

    anchors: Anchors
    value: T | None
    refusal: str
    since: float
    until: float


class Recognition(Generic[T]):
    """Maps client certificates of certain authorities to values. Each certificate is verified once.

    ``read`` returns the value for a verified certificate, or raises RefusedError.
    """

    def __init__(
        self,
        authorities: Authorities,
        read: Callable[[x509.Certificate], T],
        *,
        purpose: str,
        clock: Callable[[], float] = time.time,
        level: int = logging.INFO,
    ) -> None:
        """``purpose`` is the holder of such a certificate in log messages; ``level`` is the log level of a refusal."""
        self._authorities = authorities
        self._read = read
        self._purpose, self._level = purpose, level
        self._clock = clock
        self._seen: BoundedCache[bytes, _Found[T]] = BoundedCache(MAX_CACHED)
        """Keys: the client's own certificate if it was accepted, since its path stays valid whatever else is sent; a
        digest of all its certificates if it was refused, since a client may send an intermediate next time. So no
        entry holds useless certificates."""

    def of(self, chain: Chain) -> T:
        """The value for a client with these certificates. Raises CredentialRefused."""
        now = self._clock()
        found = self._cached(chain[0], now) or self._cached(_digest(chain), now) or self._look(chain, now)
        if found.value is None:
            refusal = found.refusal
            raise CredentialRefused(lambda: f"client certificate{_named(chain)} as that of {self._purpose}: {refusal}")
        return found.value

    def _cached(self, key: bytes, now: float) -> _Found[T] | None:
        found = self._seen.get(key)
        if found is None or found.anchors is not self._authorities.current or not found.since <= now <= found.until:
            return None
        return found

    def forget(self) -> None:
        """Clears the cache: ``read`` returns other values from now on."""
        self._seen.clear()

    def _look(self, chain: Chain, now: float) -> _Found[T]:
        found = self._examine(chain, now)
        if found.value is None:
            log.log(self._level, "client certificate refused as that of %s: %s", self._purpose, found.refusal)
        self._seen.put(_digest(chain) if found.value is None else chain[0], found)
        return found

    def _examine(self, chain: Chain, now: float) -> _Found[T]:
        from cryptography import x509  # noqa: PLC0415

        from clusterregistry.apiserver.authn import certificate_path as paths  # noqa: PLC0415

        anchors = self._authorities.current
        try:
            leaf, *others = (x509.load_der_x509_certificate(der) for der in chain[:MAX_CHAIN])
            path = paths.Search(anchors.certificates, others, now=now).path(leaf)
            value = self._read(leaf)
        except paths.RefusedError as refusal:
            return _Found(anchors, None, str(refusal), now, now + REFUSED_SECONDS)
        except Exception as error:  # noqa: BLE001 - the library has no common error type for what is malformed
            return _Found(anchors, None, f"it cannot be read: {type(error).__name__}", now, now + REFUSED_SECONDS)
        return _Found(anchors, value, "", *paths.period(path))


def _named(chain: Chain) -> str:
    """The subject of a client's certificate, for the log; empty when it cannot be read."""
    from cryptography import x509  # noqa: PLC0415

    try:
        return f" of {x509.load_der_x509_certificate(chain[0]).subject.rfc4514_string() or 'an empty subject'}"
    except Exception:  # noqa: BLE001 - the library has no common error type for what is malformed
        return ""


def _digest(chain: Chain) -> bytes:
    """The digest of the certificates that are read of a chain."""
    digest = hashlib.sha256()
    for each in chain[:MAX_CHAIN]:
        digest.update(len(each).to_bytes(4) + each)
    return digest.digest()


def common_name(certificate: x509.Certificate) -> str:
    """The last common name of a subject, as in Go; empty if there is none."""
    names = subject_values(certificate, "2.5.4.3")
    return names[-1] if names else ""


def subject_values(certificate: x509.Certificate, oid: str) -> list[str]:
    return [str(each.value) for each in certificate.subject if each.oid.dotted_string == oid]
