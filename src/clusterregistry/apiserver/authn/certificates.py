"""Whose certificate is it? What is common to all who recognise clients by certificates of certain authorities."""

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

MAX_REMEMBERED = 4096

REFUSED_SECONDS = 60.0
"""How long a refusal stands before a certificate is looked at again: it may not have been valid yet."""

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

log = logging.getLogger(__name__)


def certificates_in(pem: str) -> set[bytes]:
    """The certificates of a PEM file as DER, those that can be told apart as such."""
    found = set()
    for block in _BLOCK.findall(pem):
        with contextlib.suppress(ValueError):
            found.add(ssl.PEM_cert_to_DER_cert(block))
    return found


class Anchors:
    """Some authorities as they were at one moment. Parsed when they are first needed: that is a slow import."""

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
    """The authorities whose certificates count for one purpose. They are exchanged as a whole while serving."""

    def __init__(self, pem: str = "") -> None:
        self.current = Anchors(pem)

    def replace(self, pem: str) -> None:
        """From now on these count, and no others, also for those who are connected."""
        self.current = Anchors(pem)


@dataclass(frozen=True, slots=True)
class _Found(Generic[T]):
    """What was found out about a chain by some anchors; holds from one time to another."""

    anchors: Anchors
    value: T | None
    refusal: str
    since: float
    until: float


class Recognition(Generic[T]):
    """Reads the certificates of clients that lead to certain authorities. Each is verified once for its time.

    ``read`` makes a value of a verified certificate, or raises RefusedError.
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
        """``purpose`` names what such a certificate is for in the log; ``level`` is that of a refusal."""
        self._authorities = authorities
        self._read = read
        self._purpose, self._level = purpose, level
        self._clock = clock
        self._seen: BoundedCache[bytes, _Found[T]] = BoundedCache(MAX_REMEMBERED)
        """By the client's own certificate for one that counts, whatever else was sent: that there is a way from it to
        an authority stays true. For one that does not, by a digest of all that was looked at: more may be sent another
        time. So useless certificates that come along are not kept."""

    def of(self, chain: Chain) -> T:
        """The value for a client that showed these certificates. Raises CredentialRefused."""
        now = self._clock()
        found = self._remembered(chain[0], now) or self._remembered(_digest(chain), now) or self._look(chain, now)
        if found.value is None:
            refusal = found.refusal
            raise CredentialRefused(lambda: f"client certificate{_named(chain)} as that of {self._purpose}: {refusal}")
        return found.value

    def _remembered(self, key: bytes, now: float) -> _Found[T] | None:
        found = self._seen.get(key)
        if found is None or found.anchors is not self._authorities.current or not found.since <= now <= found.until:
            return None
        return found

    def forget(self) -> None:
        """Everybody is looked at anew: what ``read`` goes by has changed."""
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
    """Stands for what is looked at of a chain."""
    digest = hashlib.sha256()
    for each in chain[:MAX_CHAIN]:
        digest.update(len(each).to_bytes(4) + each)
    return digest.digest()


def common_name(certificate: x509.Certificate) -> str:
    """Of several common names the last counts, as Go reads a subject; empty when there is none."""
    names = subject_values(certificate, "2.5.4.3")
    return names[-1] if names else ""


def subject_values(certificate: x509.Certificate, oid: str) -> list[str]:
    return [str(each.value) for each in certificate.subject if each.oid.dotted_string == oid]
