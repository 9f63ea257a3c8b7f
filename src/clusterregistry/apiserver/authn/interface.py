"""The port of authentication: what an authenticator reads of a request, returns and raises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.user import User


class AuthRequest(Protocol):
    """The parts of a request that authentication reads."""

    def header(self, name: str) -> str:
        """The value of a header by its lower-case name; ``""`` when it is absent."""
        ...

    def header_values(self, name: str) -> Sequence[str]:
        """All values of a header that may come several times, in their order."""
        ...

    def headers_beginning(self, prefix: str) -> Sequence[tuple[str, str]]:
        """All headers with this lower-case prefix, in their order: the rest of the name, and the value."""
        ...

    @property
    def client_certificates(self) -> tuple[bytes, ...]:
        """The client's certificate and the further ones that it sent, as DER; empty if it sent none.

        TLS has verified that the client has the key, and that the certificate leads to an authority of any purpose.
        Authenticators establish which authority that is, and whether the certificate is valid now.
        """
        ...


Outcome = User | None
"""The user; None if the request has no credentials of the authenticator's kind."""


class Authenticator(Protocol):
    """One method of authentication."""

    def authenticate(self, request: AuthRequest) -> Outcome | Awaitable[Outcome]:
        """The user, or None if the request has no credentials of this kind.

        An authenticator that has to call another server returns an awaitable, else the result itself.

        Raises CredentialRefused for invalid credentials of this kind, a 401 where required credentials are missing,
        and nothing else. Called for each request: must not block, and must cost about a microsecond for credentials
        that it has seen before.
        """
        ...


class CredentialRefused(APIError):  # noqa: N818 - what happens to the credential
    """A 401 for an invalid credential. The client never sees the reason.

    ``describe`` returns the credential and the reason for the log, without secrets. It is called only for refusals
    that are logged: of many in a second most are not.
    """

    def __init__(self, describe: Callable[[], str]) -> None:
        super().__init__(errors.unauthorized().status)
        self.describe = describe
