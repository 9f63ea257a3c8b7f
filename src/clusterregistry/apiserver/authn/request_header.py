"""The word of a front proxy: it has authenticated its client, and says in headers who that is.

Whoever could set these headers could be anybody, so they count only on a connection with a certificate of the front
proxies' authorities and, if names are given, with one of these common names. For all others they are not there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from clusterregistry.apiserver.authn.certificates import Authorities, Recognition, common_name
from clusterregistry.apiserver.authn.interface import AuthRequest, CredentialRefused
from clusterregistry.apiserver.authn.user import User, authenticated

if TYPE_CHECKING:
    from cryptography import x509


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyHeaders:
    """The headers in which a front proxy speaks, lower-case. Those of one purpose are looked at in their order."""

    user: tuple[str, ...] = ("x-remote-user",)
    uid: tuple[str, ...] = ("x-remote-uid",)
    group: tuple[str, ...] = ("x-remote-group",)
    extra: tuple[str, ...] = ("x-remote-extra-",)
    """How the names of further headers begin: what follows is a key."""


class FrontProxy:
    """Users whom a front proxy vouches for."""

    def __init__(
        self,
        authorities: Authorities,
        *,
        headers: ProxyHeaders,
        names: Sequence[str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``names`` are the common names of proxies; when empty, all of the authorities' certificates are proxies."""
        self.headers = headers
        self._names = frozenset(names)
        self._proxies = Recognition(authorities, self._proxy, purpose="a front proxy", clock=clock)

    @property
    def are_named(self) -> bool:
        """Whether only certificates with certain names are those of front proxies."""
        return bool(self._names)

    def replace(self, *, headers: ProxyHeaders, names: Sequence[str]) -> None:
        """From now on these count, and no others, also for those who are connected."""
        self.headers, self._names = headers, frozenset(names)
        self._proxies.forget()  # by former names

    def authenticate(self, request: AuthRequest) -> User | None:
        chain, named = request.client_certificates, self.headers
        if not chain:
            return None
        name = _first(request, named.user)
        if not name:  # first, so that users with certificates are not taken for proxies that are refused
            return None
        self._proxies.of(chain)
        return authenticated(
            name=name,
            uid=_first(request, named.uid),
            groups=[group for header in named.group for group in _texts(request.header_values(header)) if group],
            extra=self._extra(request),
        )

    def _extra(self, request: AuthRequest) -> dict[str, tuple[str, ...]]:
        try:
            return extra_of(pair for start in self.headers.extra for pair in request.headers_beginning(start))
        except ValueError:
            raise _not_text() from None

    def _proxy(self, certificate: x509.Certificate) -> str:
        """The common name of a proxy. Raises RefusedError."""
        from clusterregistry.apiserver.authn.certificate_path import RefusedError  # noqa: PLC0415 - slow import

        name = common_name(certificate)
        if self._names and name not in self._names:
            raise RefusedError(f"its common name {name!r} is not one of the allowed names of front proxies")
        return name


def text_of(value: str) -> str:
    """A header's value as text: UTF-8, as Go reads it. Raises ValueError for bytes that are none."""
    return value if value.isascii() else value.encode("latin-1").decode()


def extra_of(headers: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Extra values by key, from the rests of headers' names and their values. Raises ValueError as ``text_of``."""
    extra: dict[str, list[str]] = {}
    for rest, value in headers:
        extra.setdefault(key_of(rest), []).append(text_of(value))
    return {key: tuple(values) for key, values in extra.items()}


def key_of(rest: str) -> str:
    """The key that the rest of a header's name stands for: percent-decoded, or as it is when that gives no text."""
    if "%" not in rest:
        return rest
    for at, character in enumerate(rest):
        if character == "%" and not _is_hex(rest[at + 1 : at + 3]):
            return rest
    try:
        return unquote_to_bytes(rest).decode()
    except UnicodeDecodeError:
        return rest


def _is_hex(text: str) -> bool:
    return len(text) == 2 and all(character in "0123456789abcdef" for character in text)  # noqa: PLR2004 - a byte


def _first(request: AuthRequest, headers: tuple[str, ...]) -> str:
    values = (request.header(header) for header in headers)
    return next(iter(_texts([value for value in values if value])), "")


def _texts(values: Sequence[str]) -> list[str]:
    try:
        return [text_of(value) for value in values]
    except ValueError:
        raise _not_text() from None


def _not_text() -> CredentialRefused:
    return CredentialRefused(lambda: "user named by a front proxy: the headers are not UTF-8 text")
