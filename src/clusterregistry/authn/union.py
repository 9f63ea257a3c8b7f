"""The order in which authenticators are asked."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.apis.meta.errors import APIError
from clusterregistry.authn.anonymous import Anonymous, NoAnonymous
from clusterregistry.authn.bearer import BearerTokens, TokenAuthenticator
from clusterregistry.authn.interface import Authenticator, AuthRequest
from clusterregistry.authn.users import User
from clusterregistry.authn.x509 import ClientCertificates


class Union:
    """Asks each in turn; the first user counts.

    As in kube-apiserver, bad credentials of one kind do not hide good ones of another: the refusal stands only
    when nobody after it recognises a user. ``fallback`` decides when there were no credentials at all.
    """

    def __init__(self, authenticators: Sequence[Authenticator], *, fallback: Authenticator) -> None:
        self._authenticators = tuple(authenticators)
        self._fallback = fallback

    def authenticate(self, request: AuthRequest) -> User | None:
        refused: APIError | None = None
        for authenticator in self._authenticators:
            try:
                user = authenticator.authenticate(request)
            except APIError as error:
                refused = refused or error
                continue
            if user is not None:
                return user
        if refused is not None:
            raise refused
        return self._fallback.authenticate(request)


def in_order(*, tokens: Sequence[TokenAuthenticator], anonymous: bool) -> Union:
    """The authenticators of a server, in kube-apiserver's order: certificate, bearer token, anonymous."""
    return Union(
        (ClientCertificates(), BearerTokens(tokens)),
        fallback=Anonymous() if anonymous else NoAnonymous(),
    )
