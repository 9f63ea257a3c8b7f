"""Bearer tokens: the ``Authorization`` header, and the sources of tokens that are asked in turn."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from clusterregistry.apiserver.authn.interface import AuthRequest, CredentialRefused, Outcome
from clusterregistry.apiserver.authn.user import User

MAX_TOKEN = 32 * 1024
"""Characters. Longer tokens are refused: even the tokens of issuers that put all groups into them are far shorter."""

_KEY = os.urandom(32)


class TokenAuthenticator(Protocol):
    """A source of tokens: maps a token to its user."""

    def user_of(self, token: str) -> Outcome | Awaitable[Outcome]:
        """The user of a token, or None for an unknown token. Raises nothing but a 503 if the source is unavailable.

        A source that has to call another server returns an awaitable. Called for each request: must not block, and
        must cost about a microsecond for a known token.
        """
        ...


@runtime_checkable
class Explaining(Protocol):
    """A source of tokens that can explain why it refuses a token."""

    def refusal(self, token: str) -> str:
        """The reason why ``user_of`` returned None, for the log: without any part of the token that is secret.

        Empty where it is no token of this source at all.
        """
        ...


class BearerTokens:
    """Returns the user of a known token, and refuses every other token with 401.

    As in kube-apiserver, the scheme is not case-sensitive, and a header of another scheme, or with an empty token, is
    ignored. Unlike the library under kube-apiserver, a token is refused also when no token source is configured: a
    client that sends a token expects to be authenticated, and must not become anonymous unnoticed.
    """

    def __init__(self, sources: Sequence[TokenAuthenticator]) -> None:
        self._all = tuple(sources)
        self._sources = sources[0] if len(sources) == 1 else TokenSources(sources)

    def authenticate(self, request: AuthRequest) -> Outcome | Awaitable[Outcome]:
        header = request.header("authorization")
        token = token_of(header) if header else ""
        if not token:
            return None
        outcome = self._sources.user_of(token)
        return outcome if isinstance(outcome, User) else self._without_user(outcome, token)

    def user_of(self, token: str) -> User | Awaitable[User]:
        """The user of a token. Raises CredentialRefused."""
        outcome = self._sources.user_of(token)
        return outcome if isinstance(outcome, User) else self._without_user(outcome, token)

    def _without_user(self, asked: Awaitable[Outcome] | None, token: str) -> Awaitable[User]:
        if asked is None:
            raise self._refused(token)
        return self._known(asked, token)

    async def _known(self, asked: Awaitable[Outcome], token: str) -> User:
        user = await asked
        if user is None:
            raise self._refused(token)
        return user

    def _refused(self, token: str) -> CredentialRefused:
        return CredentialRefused(lambda: f"bearer token: {self._why(token)}")

    def _why(self, token: str) -> str:
        if not self._all:
            return "no source of tokens is configured"
        found = [source.refusal(token) for source in self._all if isinstance(source, Explaining)]
        reasons = [reason for reason in found if reason]
        return "; ".join(reasons) or "it is not known"


def token_of(header: str) -> str:
    """The token of an Authorization header; ``""`` if it has no bearer token.

    Split at single spaces, as in kube-apiserver: a second space before the token makes it empty.
    """
    parts = header.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":  # noqa: PLR2004 - scheme and token
        return ""
    return parts[1]


class TokenSources:
    """Several sources of tokens as one: the first one that returns a user counts."""

    def __init__(self, sources: Sequence[TokenAuthenticator]) -> None:
        self._sources = tuple(sources)

    def user_of(self, token: str) -> Outcome | Awaitable[Outcome]:
        return self._ask(iter(self._sources), token)

    def _ask(self, sources: Iterator[TokenAuthenticator], token: str) -> Outcome | Awaitable[Outcome]:
        for source in sources:
            outcome = source.user_of(token)
            if isinstance(outcome, User):
                return outcome
            if outcome is not None:
                return self._go_on(outcome, sources, token)
        return None

    async def _go_on(self, asked: Awaitable[Outcome], others: Iterator[TokenAuthenticator], token: str) -> Outcome:
        """Waits for one source, and tries the others if it returns no user."""
        user = await asked
        if user is not None:
            return user
        following = self._ask(others, token)
        return following if following is None or isinstance(following, User) else await following


def usable(token: str) -> bool:
    """Whether a token can be valid: RFC 6750 allows only ASCII."""
    return len(token) <= MAX_TOKEN and token.isascii()


def fingerprint(token: str) -> bytes:
    """The cache key of a token: a keyed hash, so that no cache holds a token. Valid for this process only."""
    return hashlib.sha256(_KEY + token.encode("ascii")).digest()
