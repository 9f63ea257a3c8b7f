"""Bearer tokens: the ``Authorization`` header, and the sources of tokens that are asked in turn."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from clusterregistry.apiserver.authn.interface import AuthRequest, CredentialRefused, Outcome
from clusterregistry.apiserver.authn.user import User

MAX_TOKEN = 32 * 1024
"""Characters. A longer token is nobody's: those of the issuers that put all groups into them stay far below."""

_KEY = os.urandom(32)


class TokenAuthenticator(Protocol):
    """Somebody who knows tokens."""

    def user_of(self, token: str) -> Outcome | Awaitable[Outcome]:
        """The user of a token, or None for a token that is not good here. Raises only the 503 of nobody to ask.

        Who has to ask somebody else first answers with an awaitable. Called for each request: must not block, and
        must cost about a microsecond for a token that it has seen before.
        """
        ...


@runtime_checkable
class Explaining(Protocol):
    """A source of tokens that can say why a token is not good there."""

    def refusal(self, token: str) -> str:
        """Why ``user_of`` has answered None, for the log: nothing of the token itself."""
        ...


class BearerTokens:
    """Answers users for known tokens and 401 for every other token.

    As kube-apiserver does: the scheme counts in any case, and a header of another scheme, or with an empty token, is
    not for us. Unlike the library under kube-apiserver, a token is refused also when no token source is configured:
    whoever sends one means to be somebody, and should hear of the mistake.
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
        if outcome is None:
            raise self._refused(token)
        return outcome if isinstance(outcome, User) else self._known(outcome, token)

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
        reasons = [source.refusal(token) for source in self._all if isinstance(source, Explaining)]
        return "; ".join(reasons) or "it is not known"


def token_of(header: str) -> str:
    """The token of an Authorization header; ``""`` when it is not a bearer token.

    Cut at single spaces, as kube-apiserver cuts: a second space before the token makes it empty.
    """
    parts = header.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":  # noqa: PLR2004 - scheme and token
        return ""
    return parts[1]


class TokenSources:
    """Several who know tokens as one: the first who knows the user counts."""

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
        """Waits for one answer, and asks the others if that is no user."""
        user = await asked
        if user is not None:
            return user
        following = self._ask(others, token)
        return following if following is None or isinstance(following, User) else await following


def usable(token: str) -> bool:
    """Whether a token is worth a look: RFC 6750 has nothing but ASCII in tokens."""
    return len(token) <= MAX_TOKEN and token.isascii()


def fingerprint(token: str) -> bytes:
    """Different for different tokens, the same while the process lives, and of no use to whoever reads our memory."""
    return hashlib.sha256(_KEY + token.encode("ascii")).digest()
