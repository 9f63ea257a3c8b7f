"""Users named by a front proxy, which has authenticated its client and sends the user in request headers.

A client that could set these headers could be any user. So the headers count only on a connection with a certificate of
the front proxies' authorities and, if names are configured, with one of these common names. Otherwise they are ignored.
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
    """The headers of a front proxy, lower-case. Of several for one purpose the first one that is present counts."""

    user: tuple[str, ...] = ("x-remote-user",)
    uid: tuple[str, ...] = ("x-remote-uid",)
    group: tuple[str, ...] = ("x-remote-group",)
    extra: tuple[str, ...] = ("x-remote-extra-",)
    """Prefixes of further headers: the rest of the name is a key."""


class FrontProxy:
    """Authenticates the users that a front proxy names."""

    def __init__(
        self,
        authorities: Authorities,
        *,
        headers: ProxyHeaders,
        names: Sequence[str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``names`` are the common names of proxies; if empty, every certificate of the authorities is a proxy's."""
        self.headers = headers
        self._names = frozenset(names)
        self._proxies = Recognition(authorities, self._proxy, purpose="a front proxy", clock=clock)

    @property
    def are_named(self) -> bool:
        """Whether front proxies are limited to certain common names."""
        return bool(self._names)

    def replace(self, *, headers: ProxyHeaders, names: Sequence[str]) -> None:
        """Replaces headers and names, with immediate effect on open connections."""
        self.headers, self._names = headers, frozenset(names)
        self._proxies.forget()  # by former names

    def authenticate(self, request: AuthRequest) -> User | None:
        chain, named = request.client_certificates, self.headers
        if not chain:
            return None
        name = _first(request, named.user)
        if not name:  # first, so that users with certificates are not refused as proxies
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
    """A header's value decoded as UTF-8, as in Go. Raises ValueError for other bytes."""
    return value if value.isascii() else value.encode("latin-1").decode()


def extra_of(headers: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Extra values by key, from headers without their prefix. Raises ValueError as ``text_of`` does."""
    extra: dict[str, list[str]] = {}
    for rest, value in headers:
        extra.setdefault(key_of(rest), []).append(text_of(value))
    return {key: tuple(values) for key, values in extra.items()}


def key_of(rest: str) -> str:
    """The key in the rest of a header's name: percent-decoded, or unchanged if that is not text."""
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
