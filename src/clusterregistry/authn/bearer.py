"""``Authorization: Bearer TOKEN``: takes the token from the header and asks those who know tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from clusterregistry.apis.meta import errors
from clusterregistry.authn.interface import AuthRequest
from clusterregistry.authn.users import User

MAX_REMEMBERED = 4096
LONGEST_REMEMBERED = 8192


class TokenAuthenticator(Protocol):
    """Somebody who knows tokens."""

    def user_of(self, token: str) -> User | None:
        """The user of a token, or None for a token unknown here. An answer must hold until the process ends."""
        ...


class BearerTokens:
    """Answers users for known tokens and 401 for every other token.

    As kube-apiserver does: the scheme counts in any case, and a header of another scheme, or with an empty token, is
    not for us. Unlike the library under kube-apiserver, a token is refused also when no token source is configured:
    whoever sends one means to be somebody, and should hear of the mistake.
    """

    def __init__(self, sources: Sequence[TokenAuthenticator]) -> None:
        self._sources = tuple(sources)
        self._users: dict[str, User] = {}

    def authenticate(self, request: AuthRequest) -> User | None:
        header = request.header("authorization")
        if not header:
            return None
        user = self._users.get(header)
        return user if user is not None else self._look_up(header)

    def _look_up(self, header: str) -> User | None:
        token = token_of(header)
        if not token:
            return None
        for source in self._sources:
            user = source.user_of(token)
            if user is not None:
                if len(header) <= LONGEST_REMEMBERED:
                    self._remember(header, user)
                return user
        raise errors.unauthorized()

    def _remember(self, header: str, user: User) -> None:
        # Only good and short headers are kept, so strangers cannot fill this; spellings of one token still could.
        if len(self._users) >= MAX_REMEMBERED:
            self._users.clear()
        self._users[header] = user


def token_of(header: str) -> str:
    """The token of an Authorization header; ``""`` when it is not a bearer token.

    Cut at single spaces, as kube-apiserver cuts: a second space before the token makes it empty.
    """
    parts = header.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":  # noqa: PLR2004 - scheme and token
        return ""
    return parts[1]
