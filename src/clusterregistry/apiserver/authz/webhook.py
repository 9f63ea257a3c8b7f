"""Authorization by a webhook, with a SubjectAccessReview of ``authorization.k8s.io/v1`` as kube-apiserver sends it.

Decisions are cached, those that allow and those that do not for times of their own. Field and label selectors are not
sent.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, Protocol

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes, Decision, UserRules, Verdict
from clusterregistry.apiserver.webhooks.call_cache import SingleFlight, TTLCache
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState

log = logging.getLogger(__name__)

API_VERSION = "authorization.k8s.io/v1"
MAX_CACHED = 8192
LONGEST_CACHED = 10_000
"""Characters that a client chooses. As in kube-apiserver, a decision on more of them is not cached."""

CONTRADICTION = "the authorization webhook both allows and denies it"
_SILENT = "the authorization webhook does not answer"
_UNKNOWN_RULES = UserRules(incomplete=True, problems=("webhook authorizer does not support user rule resolution",))
_FIELDS = ("verb", "group", "version", "resource", "subresource", "name", "namespace")


class ReviewClient(Protocol):
    """Sends reviews to the webhook."""

    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the document of the response. Raises CallFailed, and nothing else."""
        ...


class Webhook:
    """Has a webhook decide. ``on_failure`` is the verdict if it does not answer.

    ``undecided`` makes the decision instead, where no answer must not count as a refusal.
    """

    def __init__(  # noqa: PLR0913 - all but the webhook by keyword
        self,
        webhook: ReviewClient,
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
        # Apart, so that a user with many refusals does not push out what others are allowed.
        self._allowed: TTLCache[Hashable, Decision] = TTLCache(MAX_CACHED, clock=clock)
        self._refused: TTLCache[Hashable, Decision] = TTLCache(MAX_CACHED, clock=clock)
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
        if decision.reason != CONTRADICTION and _controlled(attributes) < LONGEST_CACHED:
            cache = self._allowed if decision.allowed else self._refused
            cache.keep_for(key, decision, seconds=self._seconds[decision.allowed])
        return decision

    def rules_of(self, user: User, *, namespace: str = "") -> UserRules:  # noqa: ARG002 - the port's signature
        """Incomplete, as in kube-apiserver: a webhook cannot list what it would allow."""
        return _UNKNOWN_RULES

    def _failed(self, error: CallFailed) -> Decision:
        self._state.failed(error)
        return self._undecided(error) if self._undecided else self._silent

    async def close(self) -> None:
        await self._questions.close()


def _key(attributes: Attributes) -> Hashable:
    """Everything that the review depends on."""
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
    """The review to send. As in Go's JSON, empty fields are left out."""
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
    """The status of a response. Raises CallFailed if it is not a SubjectAccessReview."""
    if answer.get("apiVersion") != API_VERSION or answer.get("kind") != "SubjectAccessReview":
        raise CallFailed(f"its answer is no SubjectAccessReview of {API_VERSION}")
    status = answer.get("status")
    if not isinstance(status, dict) or not all(
        isinstance(status.get(name, False), bool) for name in ("allowed", "denied")
    ):
        raise CallFailed("its answer does not say what is allowed")
    return status


def decide(status: Mapping[str, Any]) -> Decision:
    """The decision of a status. One that allows and denies at once denies, as in kube-apiserver."""
    if status.get("evaluationError"):
        log.warning("the authorization webhook reports an error: %r", status["evaluationError"])
    allowed, denied = status.get("allowed", False), status.get("denied", False)
    if allowed and denied:
        log.warning(CONTRADICTION)
        return Decision(Verdict.DENY, CONTRADICTION)
    verdict = Verdict.DENY if denied else Verdict.ALLOW if allowed else Verdict.NO_OPINION
    reason = status.get("reason")
    return Decision(verdict, reason if isinstance(reason, str) else "")
