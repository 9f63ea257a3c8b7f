"""The port of authentication: what an authenticator sees of a request, and what it answers."""

from __future__ import annotations

from typing import Protocol

from clusterregistry.authn.users import User


class AuthRequest(Protocol):
    """The little of a request that authentication looks at."""

    def header(self, name: str) -> str:
        """The value of a header by its lower-case name; ``""`` when it is absent."""
        ...

    @property
    def client_certificate(self) -> bytes | None:
        """The client's certificate as DER. TLS has already verified it against the client CAs."""
        ...


class Authenticator(Protocol):
    """One way to recognise a user."""

    def authenticate(self, request: AuthRequest) -> User | None:
        """The user, or None when the request holds no credentials of this kind.

        Raises ``errors.unauthorized()`` for credentials of this kind that are not good, and nothing else.
        Called for each request: must not block, and must cost about a microsecond when it has seen the
        credentials before.
        """
        ...
