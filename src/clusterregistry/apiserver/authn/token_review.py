"""Authenticates tokens by a webhook, with a TokenReview of ``authentication.k8s.io/v1`` as kube-apiserver does.

Both results, a user or no user, are cached. If the webhook fails, nothing is cached, and the request gets a 401, or the
error that ``on_failure`` returns.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.bearer import fingerprint, usable
from clusterregistry.apiserver.authn.user import User, authenticated
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState
from clusterregistry.apiserver.webhooks.singleflight import SingleFlight
from clusterregistry.apiserver.webhooks.ttl_cache import TTLCache

log = logging.getLogger(__name__)

API_VERSION = "authentication.k8s.io/v1"
MAX_CACHED = 8192
LOG_SECONDS = 10.0
"""Errors of the webhook are logged once in this time: unauthenticated clients must not fill a disk."""


class Webhook(Protocol):
    """A server that answers TokenReviews."""

    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the answer to a document. Raises CallFailed, and nothing else."""
        ...


@dataclass(frozen=True, slots=True)
class Review:
    """The result of a TokenReview. ``error``: why the webhook could not decide, which may be temporary."""

    user: User | None
    error: str = ""


class TokenReviews:
    """A source of tokens: a webhook, with a cache."""

    def __init__(  # noqa: PLR0913 - all but the webhook by keyword
        self,
        webhook: Webhook,
        *,
        seconds: float,
        audiences: Sequence[str] = (),
        on_failure: Callable[[CallFailed], APIError] | None = None,
        state: HealthState | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``on_failure`` returns the error of requests when the webhook fails; without it they get a 401."""
        self._webhook, self._seconds, self._audiences = webhook, seconds, tuple(audiences)
        self._users: TTLCache[bytes, User] = TTLCache(MAX_CACHED, clock=clock)
        self._unknown: TTLCache[bytes, bool] = TTLCache(MAX_CACHED, clock=clock)
        self._logged: TTLCache[str, bool] = TTLCache(1, clock=clock)
        self._questions: SingleFlight[bytes, User | None] = SingleFlight()
        self._on_failure = on_failure
        self._state = state or HealthState(
            "the authentication webhook", consequence="tokens that only it knows get a 401"
        )

    def user_of(self, token: str) -> User | Awaitable[User | None] | None:
        if not usable(token):
            return None
        key = fingerprint(token)
        user = self._users.get(key)
        if user is not None or self._unknown.get(key):
            return user
        try:
            return self._questions.ask(key, lambda: self._ask(key, token))
        except CallFailed as error:
            self._failed(error)
            return None

    def refusal(self, token: str) -> str:  # noqa: ARG002 - the port's signature
        return f"{self._state.name} does not know it"

    async def _ask(self, key: bytes, token: str) -> User | None:
        try:
            answer = await self._webhook.ask(question(token, self._audiences))
            review = read_review(answer, audiences=self._audiences)
        except CallFailed as error:
            self._failed(error)
            return None
        self._state.worked()
        self._cache(key, review)
        return review.user

    def _failed(self, error: CallFailed) -> None:
        self._state.failed(error)
        if self._on_failure is not None:
            raise self._on_failure(error)

    def _cache(self, key: bytes, review: Review) -> None:
        if review.user is not None:
            self._users.keep_for(key, review.user, seconds=self._seconds)
        elif review.error:
            self._log(review.error)  # as in kube-apiserver: not cached, since it may be temporary
        else:
            self._unknown.keep_for(key, True, seconds=self._seconds)

    def _log(self, error: str) -> None:
        if not self._logged.get("error"):
            self._logged.keep_for("error", True, seconds=LOG_SECONDS)
            log.info("the authentication webhook refuses a token: %r", error)

    async def close(self) -> None:
        await self._questions.close()


def question(token: str, audiences: Sequence[str]) -> dict[str, Any]:
    spec: dict[str, Any] = {"token": token}
    if audiences:
        spec["audiences"] = list(audiences)
    return {"apiVersion": API_VERSION, "kind": "TokenReview", "spec": spec}


def read_review(answer: Mapping[str, Any], *, audiences: Sequence[str]) -> Review:
    """Parses an answer. Raises CallFailed for one that is not a TokenReview."""
    if answer.get("apiVersion") != API_VERSION or answer.get("kind") != "TokenReview":
        raise CallFailed(f"its answer is no TokenReview of {API_VERSION}")
    status = _typed(answer, "status", dict, {})
    if not _typed(status, "authenticated", bool, False):
        return Review(None, _typed(status, "error", str, ""))
    meant_for = _texts(status, "audiences")
    # As in kube-apiserver: a webhook without audiences in its answer does not know any, and its tokens are for all.
    if audiences and meant_for and not set(audiences) & set(meant_for):
        return Review(None)
    return Review(_user(_typed(status, "user", dict, {})))


def _user(user: Mapping[str, Any]) -> User:
    name = _typed(user, "username", str, "")
    if not name:
        raise CallFailed("its answer has a user without a name")
    extra = _typed(user, "extra", dict, {})
    return authenticated(
        name=name,
        uid=_typed(user, "uid", str, ""),
        groups=_texts(user, "groups"),
        extra={key: _texts(extra, key) for key in extra},
    )


def _texts(holder: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = _typed(holder, name, list, [])
    if not all(isinstance(value, str) for value in values):
        raise CallFailed(f"its answer has something else than texts in {name}")
    return tuple(values)


def _typed(holder: Mapping[str, Any], name: str, kind: type[Any], default: Any) -> Any:
    value = holder.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise CallFailed(f"its answer has a wrong {name}")
    return value
