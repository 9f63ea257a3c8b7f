"""Combines authenticators in kube-apiserver's order."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.bearer import BearerTokens, TokenAuthenticator
from clusterregistry.apiserver.authn.certificates import Authorities
from clusterregistry.apiserver.authn.interface import Authenticator, AuthRequest, Outcome
from clusterregistry.apiserver.authn.user import ANONYMOUS_USER, User
from clusterregistry.apiserver.authn.websocket import WebSocketTokens
from clusterregistry.apiserver.authn.x509 import ClientCertificates


class Anonymous:
    """Every request without credentials is from ``system:anonymous``."""

    def authenticate(self, request: AuthRequest) -> User:  # noqa: ARG002 - the port's signature
        return ANONYMOUS_USER


class NoAnonymous:
    """Replaces ``Anonymous`` with ``--anonymous-auth=false``: refuses requests without credentials."""

    def authenticate(self, request: AuthRequest) -> User:  # noqa: ARG002 - the port's signature
        raise errors.unauthorized()


class Union:
    """Tries each authenticator in turn; the first user counts.

    As in kube-apiserver, invalid credentials of one kind do not hide valid ones of another: the first refusal is raised
    only if no later authenticator returns a user. ``fallback`` decides on requests without any credentials.
    """

    def __init__(self, authenticators: Sequence[Authenticator], *, fallback: Authenticator) -> None:
        self._authenticators = tuple(authenticators)
        self._fallback = fallback

    def authenticate(self, request: AuthRequest) -> Outcome | Awaitable[Outcome]:
        return self._ask(iter(self._authenticators), request, refused=None)

    def _ask(
        self, authenticators: Iterator[Authenticator], request: AuthRequest, *, refused: APIError | None
    ) -> Outcome | Awaitable[Outcome]:
        for authenticator in authenticators:
            try:
                outcome = authenticator.authenticate(request)
            except APIError as error:
                refused = refused or error
                continue
            if isinstance(outcome, User):
                return outcome
            if outcome is not None:
                return self._go_on(outcome, authenticators, request, refused=refused)
        if refused is not None:
            raise refused
        return self._fallback.authenticate(request)

    async def _go_on(
        self,
        asked: Awaitable[Outcome],
        others: Iterator[Authenticator],
        request: AuthRequest,
        *,
        refused: APIError | None,
    ) -> Outcome:
        """Waits for one authenticator, and tries the others if it returns no user."""
        try:
            outcome = await asked
        except APIError as error:
            outcome, refused = None, refused or error
        if outcome is not None:
            return outcome
        following = self._ask(others, request, refused=refused)
        return following if following is None or isinstance(following, User) else await following


def in_order(
    *,
    clients: Authorities,
    tokens: Sequence[TokenAuthenticator],
    anonymous: bool,
    front_proxy: Authenticator | None = None,
) -> Union:
    """The authenticators of a server, in kube-apiserver's order: front proxy, certificate, bearer token, anonymous.

    A bearer token is in the header, or among the subprotocols of a WebSocket. ``clients`` are the authorities whose
    certificates make users.
    """
    proxies = (front_proxy,) if front_proxy is not None else ()
    bearer = BearerTokens(tokens)
    return Union(
        (*proxies, ClientCertificates(clients), bearer, WebSocketTokens(bearer)),
        fallback=Anonymous() if anonymous else NoAnonymous(),
    )
