"""The port of authentication: what an authenticator reads of a request, returns and raises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.user import User


class AuthRequest(Protocol):
    """The little of a request that authentication looks at."""

    def header(self, name: str) -> str:
        """The value of a header by its lower-case name; ``""`` when it is absent."""
        ...

    def header_values(self, name: str) -> Sequence[str]:
        """All values of a header that may come several times, in their order."""
        ...

    def headers_beginning(self, prefix: str) -> Sequence[tuple[str, str]]:
        """All headers whose lower-case names begin so: what follows the prefix, and the value, in their order."""
        ...

    @property
    def client_certificates(self) -> tuple[bytes, ...]:
        """The client's certificate and those that it sent along, as DER; empty when it showed none.

        TLS has verified it, and that the client has its key, against the authorities for all purposes together: which
        one it was, and whether the certificate is valid now, is for authenticators to establish.
        """
        ...


Outcome = User | None
"""Who it is; None when a request holds no credentials of the kind in question."""


class Authenticator(Protocol):
    """One way to recognise a user."""

    def authenticate(self, request: AuthRequest) -> Outcome | Awaitable[Outcome]:
        """The user, or None when the request holds no credentials of this kind.

        Who has to ask somebody else first answers with an awaitable; who knows the answer gives it at once.

        Raises CredentialRefused for credentials of this kind that are not good, a 401 without credentials where these
        must be there, and nothing else.
        Called for each request: must not block, and must cost about a microsecond when it has seen the
        credentials before.
        """
        ...


class CredentialRefused(APIError):  # noqa: N818 - what happens to the credential
    """``describe`` says which credential it is and why it is not good, and holds nothing of a secret.

    It is called only for a refusal that is logged: of many in a second most are not.
    """

    def __init__(self, describe: Callable[[], str]) -> None:
        super().__init__(errors.unauthorized().status)
        self.describe = describe
