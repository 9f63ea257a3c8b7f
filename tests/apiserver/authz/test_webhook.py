from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz import modes, webhook
from clusterregistry.apiserver.authz.interface import Attributes, Decision, Verdict, decided
from clusterregistry.apiserver.authz.webhook import Webhook, decide, question, read_status
from clusterregistry.apiserver.webhooks import singleflight
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState

JANE = User("jane", "1", ("devs", "system:authenticated"), {"scopes": ("a",)})
VERSION = "authorization.k8s.io/v1"


def get(name: str = "paris", *, user: User = JANE, **changed: Any) -> Attributes:
    members = {"verb": "get", "group": "example.com", "version": "v1", "resource": "clusters", "name": name, **changed}
    return Attributes(user=user, is_resource_request=True, **members)


def path(where: str) -> Attributes:
    return Attributes(user=JANE, verb="get", is_resource_request=False, path=where)


def allows_paris(document: Mapping[str, Any]) -> dict[str, Any]:
    attributes = document["spec"].get("resourceAttributes", {})
    if attributes.get("name") == "rome":
        return {"denied": True, "reason": "not rome"}
    return {"allowed": attributes.get("name") == "paris", "reason": "a reason"}


class Hook:
    def __init__(self, answer: Callable[[Mapping[str, Any]], dict[str, Any]] = allows_paris) -> None:
        self.answer = answer
        self.asked: list[Mapping[str, Any]] = []
        self.failing = False
        self.held: asyncio.Event | None = None

    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(document)
        if self.held:
            await self.held.wait()
        if self.failing:
            raise CallFailed("down")
        return {"apiVersion": VERSION, "kind": "SubjectAccessReview", "status": self.answer(document)}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hook() -> Hook:
    return Hook()


def made(hook: Hook, **changed: Any) -> Webhook:
    return Webhook(hook, **{"allowed_seconds": 300, "refused_seconds": 30, **changed})


async def test_what_the_webhook_says_is_the_decision(hook: Hook) -> None:
    authorizer = made(hook)
    assert await decided(authorizer, get()) == Decision(Verdict.ALLOW, "a reason")
    assert await decided(authorizer, get("rome")) == Decision(Verdict.DENY, "not rome")
    assert await decided(authorizer, get("oslo")) == Decision(Verdict.NO_OPINION, "a reason")


def test_a_question_about_a_resource_holds_all_that_is_known() -> None:
    assert question(get(subresource="status", namespace="n")) == {
        "apiVersion": VERSION,
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "jane",
            "uid": "1",
            "groups": ["devs", "system:authenticated"],
            "extra": {"scopes": ["a"]},
            "resourceAttributes": {
                "verb": "get",
                "group": "example.com",
                "version": "v1",
                "resource": "clusters",
                "subresource": "status",
                "name": "paris",
                "namespace": "n",
            },
        },
    }


def test_a_question_about_a_path_holds_the_path() -> None:
    asked = question(Attributes(user=User("jane"), verb="get", is_resource_request=False, path="/metrics"))
    assert asked["spec"] == {"user": "jane", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}


@pytest.mark.parametrize(("name", "seconds"), [("paris", 300.0), ("oslo", 30.0), ("rome", 30.0)])
async def test_answers_hold_for_their_time(hook: Hook, name: str, seconds: float) -> None:
    clock = Clock()
    authorizer = made(hook, clock=clock)
    first = await decided(authorizer, get(name))
    clock.now = seconds - 0.1
    assert authorizer.authorize(get(name)) is first
    clock.now = seconds
    assert isinstance(again := authorizer.authorize(get(name)), Awaitable)
    assert await again == first
    assert len(hook.asked) == 2


@pytest.mark.parametrize(
    "other",
    [
        get("oslo"),
        get(verb="delete"),
        get(group="other"),
        get(version="v2"),
        get(resource="nodes"),
        get(subresource="status"),
        get(namespace="n"),
        get(user=User("joe", "1", JANE.groups, JANE.extra)),
        get(user=User("jane", "2", JANE.groups, JANE.extra)),
        get(user=User("jane", "1", ("devs",), JANE.extra)),
        get(user=User("jane", "1", JANE.groups, {})),
        get(user=User("jane", "1", JANE.groups, {"scopes": ("a", "b")})),
        path("/metrics"),
    ],
)
async def test_an_answer_is_for_its_question_only(hook: Hook, other: Attributes) -> None:
    authorizer = made(hook)
    await decided(authorizer, get())
    await decided(authorizer, other)
    assert len(hook.asked) == 2


async def test_paths_are_told_apart(hook: Hook) -> None:
    authorizer = made(hook)
    await decided(authorizer, path("/metrics"))
    await decided(authorizer, path("/version"))
    assert len(hook.asked) == 2


async def test_the_same_question_is_asked_once_at_a_time(hook: Hook) -> None:
    hook.held = asyncio.Event()
    authorizer = made(hook)
    waiting = [asyncio.ensure_future(decided(authorizer, get())) for _ in range(10)]
    await asyncio.sleep(0)
    hook.held.set()
    assert all(decision.allowed for decision in await asyncio.gather(*waiting))
    assert len(hook.asked) == 1


@pytest.mark.parametrize("verdict", [Verdict.NO_OPINION, Verdict.DENY])
async def test_a_webhook_that_fails_decides_as_the_policy_says(
    hook: Hook, verdict: Verdict, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    hook.failing = True
    authorizer = made(hook, on_failure=verdict)
    for _ in range(2):
        decision = await decided(authorizer, get())
        assert decision == Decision(verdict, "the authorization webhook does not answer")
    hook.failing = False
    assert (await decided(authorizer, get())).allowed
    assert [record.getMessage() for record in caplog.records] == [
        f"the authorization webhook fails: down; its verdict is: {verdict.value}",
        "the authorization webhook answers again",
    ]


async def test_too_many_questions_are_not_asked(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(singleflight, "MAX_UNDER_WAY", 1)
    hook.held = asyncio.Event()
    authorizer = made(hook)
    first = authorizer.authorize(get())
    assert authorizer.authorize(get("oslo")) == Decision(
        Verdict.NO_OPINION, "the authorization webhook does not answer"
    )
    await authorizer.close()
    assert isinstance(first, asyncio.Future)
    assert first.cancelled()


async def test_the_memory_is_bounded_and_refusals_do_not_push_out_rights(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "MAX_CACHED", 8)
    authorizer = made(hook)
    allowed = await decided(authorizer, get())
    for number in range(20):
        await decided(authorizer, get(f"oslo-{number}"))
    assert authorizer.authorize(get()) is allowed
    assert len(authorizer._refused) <= 8


async def test_a_huge_question_is_not_remembered(hook: Hook) -> None:
    authorizer = made(hook)
    for _ in range(2):
        await decided(authorizer, path("/" + "x" * 10_000))
    assert len(hook.asked) == 2


async def test_to_allow_and_deny_at_once_is_to_deny_and_is_not_remembered(caplog: pytest.LogCaptureFixture) -> None:
    hook = Hook(lambda _: {"allowed": True, "denied": True})
    authorizer = made(hook)
    for _ in range(2):
        assert (await decided(authorizer, get())).verdict is Verdict.DENY
    assert len(hook.asked) == 2
    assert "both allows and denies" in caplog.text


def test_an_error_in_an_answer_is_logged_and_the_answer_counts(caplog: pytest.LogCaptureFixture) -> None:
    assert decide({"allowed": True, "evaluationError": "no database"}).allowed
    assert "'no database'" in caplog.text


@pytest.mark.parametrize("reason", [None, 1, ["a"]])
def test_a_reason_that_is_no_text_is_none(reason: Any) -> None:
    assert decide({"allowed": False, "reason": reason}) == Decision(Verdict.NO_OPINION, "")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"apiVersion": "authorization.k8s.io/v1beta1", "kind": "SubjectAccessReview", "status": {"allowed": True}},
        {"apiVersion": VERSION, "kind": "TokenReview", "status": {"allowed": True}},
        {"apiVersion": VERSION, "kind": "SubjectAccessReview"},
        {"apiVersion": VERSION, "kind": "SubjectAccessReview", "status": [True]},
        {"apiVersion": VERSION, "kind": "SubjectAccessReview", "status": {"allowed": "true"}},
        {"apiVersion": VERSION, "kind": "SubjectAccessReview", "status": {"allowed": 1}},
        {"apiVersion": VERSION, "kind": "SubjectAccessReview", "status": {"allowed": True, "denied": None}},
    ],
)
def test_what_is_no_review_is_a_failure(answer: dict[str, Any]) -> None:
    with pytest.raises(CallFailed):
        read_status(answer)


async def test_the_webhook_has_its_place_in_the_order(hook: Hook) -> None:
    before = modes.in_order([modes.WEBHOOK, modes.ALWAYS_ALLOW], made={modes.WEBHOOK: made(hook)})
    assert not (await decided(before, get("rome"))).allowed
    assert (await decided(before, get("oslo"))).allowed
    after = modes.in_order([modes.ALWAYS_ALLOW, modes.WEBHOOK], made={modes.WEBHOOK: made(hook)})
    assert (await decided(after, get("rome"))).allowed


async def test_masters_are_not_asked_about(hook: Hook) -> None:
    authorizer = modes.in_order([modes.WEBHOOK], made={modes.WEBHOOK: made(hook)})
    assert (await decided(authorizer, get("rome", user=User("root", groups=("system:masters",))))).allowed
    assert hook.asked == []


def test_what_a_webhook_would_allow_cannot_be_listed(hook: Hook) -> None:
    authorizer = modes.in_order([modes.RBAC, modes.WEBHOOK], made={modes.WEBHOOK: made(hook)})
    rules = authorizer.rules_of(JANE)
    assert rules.incomplete
    assert rules.problems == ("webhook authorizer does not support user rule resolution",)


async def test_one_that_must_decide_leaves_it_open_when_it_fails(hook: Hook) -> None:
    state, clock = HealthState("the host", consequence="503"), Clock()
    open_still = Decision(Verdict.DENY, "down", undecided=True)
    authorizer = made(hook, undecided=lambda error: replace(open_still, reason=str(error)), state=state, clock=clock)
    assert (await decided(authorizer, get())).allowed
    hook.failing = True
    assert (await decided(authorizer, get())).allowed  # remembered
    assert state.problem() == ""
    clock.now = 300
    assert await decided(authorizer, get()) == open_still
    assert (
        await decided(modes.in_order([modes.WEBHOOK, modes.ALWAYS_ALLOW], made={modes.WEBHOOK: authorizer}), get())
        == open_still
    )
    assert state.problem() == "down"
    hook.failing = False
    assert (await decided(authorizer, get())).allowed
    assert state.problem() == ""
