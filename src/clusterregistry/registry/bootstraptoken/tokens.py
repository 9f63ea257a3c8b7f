"""Bootstrap tokens as credentials: a source of users for authentication, and what a user's token is for.

A token is looked up in the memory of this replica, so that a guess costs no read. One that is right is confirmed with a
linearizable read: what was deleted on another replica counts nowhere.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from clusterregistry.api.clusterregistry.agents import (
    BOOTSTRAP_PREFIX,
    BOOTSTRAPPERS,
    BOOTSTRAPPERS_GROUP,
    CLUSTER_EXTRA,
    is_token_id,
    split_token,
)
from clusterregistry.api.clusterregistry.v1beta1.bootstrap_token import JOIN, digest_in, expiration
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.interface import Outcome
from clusterregistry.apiserver.authn.user import User, authenticated
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import decoded_to_read

_NOBODY = "0" * 64
"""The hash that the secret of an unknown token is compared with: no secret has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A stored token."""

    id: str
    uid: str
    cluster: str
    labels: dict[str, str]
    digest: str
    """SHA-256 of the secret, in hexadecimal digits; empty if it is stored in no form that is known."""
    ends: float
    """Unix time."""
    usages: tuple[str, ...]

    @classmethod
    def of(cls, obj: dict[str, Any]) -> Token:
        """The token of a stored object."""
        metadata, spec = obj["metadata"], obj.get("spec") or {}
        return cls(
            id=metadata["name"],
            uid=metadata.get("uid", ""),
            cluster=spec.get("clusterName") or "",
            labels=spec.get("clusterLabels") or {},
            digest=digest_in(spec.get("secretHash")),
            ends=expiration(spec.get("expirationTime")) or 0.0,
            usages=tuple(spec.get("usages") or ()),
        )

    def problem(self, now: float) -> str:
        """Why the token cannot be used; empty if it can."""
        if now >= self.ends:
            return "has expired"
        return "" if JOIN in self.usages and self.cluster else f"is not for {JOIN}"

    def user(self) -> User:
        return authenticated(
            name=BOOTSTRAP_PREFIX + self.id,
            uid=self.uid,
            groups=(BOOTSTRAPPERS, BOOTSTRAPPERS_GROUP),
            extra={CLUSTER_EXTRA: (self.cluster,)},
        )


class BootstrapTokens:
    """The tokens of a store. A source of users for bearer tokens of the form ``ID.SECRET``."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    def user_of(self, token: str) -> Outcome | Awaitable[Outcome]:
        """The user of a token; None for one that is unknown, wrong or has ended. Raises 503."""
        parts = split_token(token)
        if parts is None:
            return None
        known, digest = self._known(parts[0]), hashlib.sha256(parts[1].encode()).hexdigest()
        is_right = hmac.compare_digest(digest, known.digest if known else _NOBODY)
        if known is None or not is_right:
            return None
        if kv := self._store.get_cached(known.id):  # which is as of now
            return self._user(kv, digest)
        return self._confirmed(known.id, digest)

    async def _confirmed(self, token_id: str, digest: str) -> User | None:
        try:
            return self._user(await self._store.get(token_id), digest)
        except APIError as error:
            if error.reason == "NotFound":
                return None
            raise

    def _user(self, kv: KeyValue, digest: str) -> User | None:
        token = Token.of(decoded_to_read(kv))
        is_right = hmac.compare_digest(digest, token.digest)
        return token.user() if is_right and not token.problem(self._clock()) else None

    def refusal(self, token: str) -> str:
        """Why a token is refused, for the log: with its ID, never with its secret. Empty for another kind of token."""
        parts = split_token(token)
        if parts is None:
            return ""
        known = self._known(parts[0])
        if known is None:
            return f"there is no bootstrap token {parts[0]}"
        return f"the bootstrap token {parts[0]} {known.problem(self._clock()) or 'has another secret'}"

    def of_user(self, name: str) -> Token | None:
        """The token of a user who joins, by the user's name, as this replica knows it; None if it cannot be used."""
        token = self._known(name.removeprefix(BOOTSTRAP_PREFIX)) if name.startswith(BOOTSTRAP_PREFIX) else None
        return None if token is None or token.problem(self._clock()) else token

    def _known(self, token_id: str) -> Token | None:
        if not is_token_id(token_id):
            return None
        kv = self._store.storage.get_stale(self._store.prefix + token_id)
        return Token.of(decoded_to_read(kv)) if kv else None
