"""Decisions of a webhook: asked with a SubjectAccessReview of ``authorization.k8s.io/v1``, as kube-apiserver asks.

Answers hold for a time, those that allow and those that do not for times of their own. Field and label selectors are
not sent.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, Protocol

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes, Decision, UserRules, Verdict
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState
from clusterregistry.apiserver.webhooks.singleflight import SingleFlight
from clusterregistry.apiserver.webhooks.ttl_cache import TTLCache

log = logging.getLogger(__name__)

API_VERSION = "authorization.k8s.io/v1"
MAX_REMEMBERED = 8192
LONGEST_REMEMBERED = 10_000
"""Characters that a client chooses. As in kube-apiserver, a question with more of them is not worth the memory."""

CONTRADICTION = "the authorization webhook both allows and denies it"
_SILENT = "the authorization webhook does not answer"
_UNKNOWN_RULES = UserRules(incomplete=True, problems=("webhook authorizer does not support user rule resolution",))
_FIELDS = ("verb", "group", "version", "resource", "subresource", "name", "namespace")


class Asked(Protocol):
    """Whom we ask."""

    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The document that is answered. Raises CallFailed, and nothing else."""
        ...


class Webhook:
    """Leaves decisions to a webhook. ``on_failure`` is the verdict when it does not answer.

    ``undecided`` makes the decision instead, where one that does not answer must not count as one that refuses.
    """

    def __init__(  # noqa: PLR0913 - all but whom to ask by keyword
        self,
        webhook: Asked,
        *,
        allowed_seconds: float,
        refused_seconds: float,
        on_failure: Verdict = Verdict.NO_OPINION,
        undecided: Callable[[CallFailed], Decision] | None = None,
        state: HealthState | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._webhook = webhook
        self._seconds = {True: allowed_seconds, False: refused_seconds}
        self._silent, self._undecided = Decision(on_failure, _SILENT), undecided
        # Apart, so that nobody who is refused a lot pushes out what others may.
        self._allowed: TTLCache[Hashable, Decision] = TTLCache(MAX_REMEMBERED, clock=clock)
        self._refused: TTLCache[Hashable, Decision] = TTLCache(MAX_REMEMBERED, clock=clock)
        self._questions: SingleFlight[Hashable, Decision] = SingleFlight()
        self._state = state or HealthState(
            "the authorization webhook", consequence=f"its verdict is: {on_failure.value}"
        )

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        key = _key(attributes)
        decision = self._allowed.get(key) or self._refused.get(key)
        if decision is not None:
            return decision
        try:
            return self._questions.ask(key, lambda: self._ask(key, attributes))
        except CallFailed as error:
            return self._failed(error)

    async def _ask(self, key: Hashable, attributes: Attributes) -> Decision:
        try:
            status = read_status(await self._webhook.ask(question(attributes)))
        except CallFailed as error:
            return self._failed(error)
        self._state.worked()
        decision = decide(status)
        if decision.reason != CONTRADICTION and _controlled(attributes) < LONGEST_REMEMBERED:
            kept = self._allowed if decision.allowed else self._refused
            kept.keep_for(key, decision, seconds=self._seconds[decision.allowed])
        return decision

    def rules_of(self, user: User) -> UserRules:  # noqa: ARG002 - the port's signature
        """Nobody can list what a webhook would allow, says kube-apiserver too."""
        return _UNKNOWN_RULES

    def _failed(self, error: CallFailed) -> Decision:
        self._state.failed(error)
        return self._undecided(error) if self._undecided else self._silent

    async def close(self) -> None:
        await self._questions.close()


def _key(attributes: Attributes) -> Hashable:
    """Everything that a question holds."""
    user = attributes.user
    return (
        user.name,
        attributes.verb,
        attributes.path if not attributes.is_resource_request else None,
        attributes.group,
        attributes.version,
        attributes.resource,
        attributes.subresource,
        attributes.name,
        attributes.namespace,
        user.groups,
        user.uid,
        tuple(user.extra.items()),
    )


def _controlled(attributes: Attributes) -> int:
    return len(attributes.path) + sum(len(getattr(attributes, name)) for name in _FIELDS)


def question(attributes: Attributes) -> dict[str, Any]:
    """The review to send. As in Go's JSON, what is empty is left out."""
    user = attributes.user
    subject: dict[str, Any] = {
        "user": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
    }
    if attributes.is_resource_request:
        subject["resourceAttributes"] = _without_empty({name: getattr(attributes, name) for name in _FIELDS})
    else:
        subject["nonResourceAttributes"] = {"path": attributes.path, "verb": attributes.verb}
    return {"apiVersion": API_VERSION, "kind": "SubjectAccessReview", "spec": _without_empty(subject)}


def _without_empty(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value}


def read_status(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of an answer. Raises CallFailed for one that is no SubjectAccessReview."""
    if answer.get("apiVersion") != API_VERSION or answer.get("kind") != "SubjectAccessReview":
        raise CallFailed(f"its answer is no SubjectAccessReview of {API_VERSION}")
    status = answer.get("status")
    if not isinstance(status, dict) or not all(
        isinstance(status.get(name, False), bool) for name in ("allowed", "denied")
    ):
        raise CallFailed("its answer does not say what is allowed")
    return status


def decide(status: Mapping[str, Any]) -> Decision:
    """What a status means. One that allows and denies at once denies, as in kube-apiserver."""
    if status.get("evaluationError"):
        log.warning("the authorization webhook reports an error: %r", status["evaluationError"])
    allowed, denied = status.get("allowed", False), status.get("denied", False)
    if allowed and denied:
        log.warning(CONTRADICTION)
        return Decision(Verdict.DENY, CONTRADICTION)
    verdict = Verdict.DENY if denied else Verdict.ALLOW if allowed else Verdict.NO_OPINION
    reason = status.get("reason")
    return Decision(verdict, reason if isinstance(reason, str) else "")
