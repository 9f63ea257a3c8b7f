from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import Any

import pytest

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn import bearer, token_review
from clusterregistry.apiserver.authn.certificates import Authorities
from clusterregistry.apiserver.authn.token_review import TokenReviews, read_review
from clusterregistry.apiserver.authn.union import in_order
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.webhooks import singleflight
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState
from tests.apiserver.authn.requests import FakeRequest

JANE = User("jane", "1", ("devs", "system:authenticated"), {"scopes": ("a", "b")})
USER = {"username": "jane", "uid": "1", "groups": ["devs"], "extra": {"scopes": ["a", "b"]}}


def review(**status: Any) -> dict[str, Any]:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}


class Hook:
    """A webhook that knows the token ``good``."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self.failing = False
        self.error = ""
        self.held: asyncio.Event | None = None

    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(document)
        if self.held:
            await self.held.wait()
        if self.failing:
            raise CallFailed("down")
        if document["spec"]["token"].startswith("good"):
            return review(authenticated=True, user=USER)
        return review(authenticated=False, error=self.error)


@pytest.fixture
def hook() -> Hook:
    return Hook()


async def known(reviews: TokenReviews, token: str) -> User | None:
    """Who a token is, asked anew."""
    outcome = reviews.user_of(token)
    assert isinstance(outcome, Awaitable)
    return await outcome


async def test_a_token_that_the_webhook_knows_is_its_user(hook: Hook) -> None:
    assert await known(TokenReviews(hook, seconds=60), "good") == JANE
    assert hook.asked == [
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "good"}},
    ]


async def test_a_known_token_is_asked_about_once(hook: Hook) -> None:
    reviews = TokenReviews(hook, seconds=60)
    user = await known(reviews, "good")
    assert reviews.user_of("good") is user
    assert len(hook.asked) == 1


async def test_an_unknown_token_is_asked_about_once(hook: Hook) -> None:
    reviews = TokenReviews(hook, seconds=60)
    assert await known(reviews, "wrong") is None
    assert reviews.user_of("wrong") is None
    assert len(hook.asked) == 1


@pytest.mark.parametrize("token", ["good", "wrong"])
async def test_answers_hold_for_their_time(hook: Hook, token: str) -> None:
    now = [0.0]
    reviews = TokenReviews(hook, seconds=60, clock=lambda: now[0])
    await known(reviews, token)
    now[0] = 59.9
    assert not isinstance(reviews.user_of(token), Awaitable)
    now[0] = 60.0
    await known(reviews, token)
    assert len(hook.asked) == 2


async def test_all_who_ask_about_a_token_at_once_wait_for_one_answer(hook: Hook) -> None:
    hook.held = asyncio.Event()
    reviews = TokenReviews(hook, seconds=60)
    waiting = [asyncio.ensure_future(known(reviews, "good")) for _ in range(10)]
    await asyncio.sleep(0)
    hook.held.set()
    assert await asyncio.gather(*waiting) == [JANE] * 10
    assert len(hook.asked) == 1


async def test_a_webhook_that_fails_knows_nobody_and_is_asked_again(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    reviews = TokenReviews(hook, seconds=60)
    hook.failing = True
    assert await known(reviews, "good") is None
    assert await known(reviews, "good") is None
    hook.failing = False
    assert await known(reviews, "good") == JANE
    assert [record.getMessage() for record in caplog.records] == [
        "the authentication webhook fails: down; tokens that only it knows get a 401",
        "the authentication webhook answers again",
    ]


async def test_an_error_of_the_webhook_is_not_remembered_and_logged_once(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    hook.error = "no database"
    reviews = TokenReviews(hook, seconds=60)
    assert await known(reviews, "wrong") is None
    assert await known(reviews, "wrong") is None
    assert [record.getMessage() for record in caplog.records] == [
        "the authentication webhook refuses a token: 'no database'"
    ]


@pytest.mark.parametrize("token", ["é", "x" * (bearer.MAX_TOKEN + 1)])
def test_what_cannot_be_a_token_is_not_asked_about(hook: Hook, token: str) -> None:
    assert TokenReviews(hook, seconds=60).user_of(token) is None


async def test_too_many_questions_are_not_asked(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(singleflight, "MAX_UNDER_WAY", 1)
    hook.held = asyncio.Event()
    reviews = TokenReviews(hook, seconds=60)
    first = reviews.user_of("good")
    assert reviews.user_of("good too") is None
    await reviews.close()
    assert isinstance(first, asyncio.Future)
    assert first.cancelled()


async def test_the_memory_is_bounded_and_holds_no_token(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_review, "MAX_REMEMBERED", 8)
    reviews = TokenReviews(hook, seconds=60)
    for number in range(20):
        await known(reviews, f"good{number}")
        await known(reviews, f"wrong{number}")
    assert len(reviews._users) <= 8
    assert len(reviews._unknown) <= 8
    assert all(isinstance(key, bytes) and b"good" not in key for key in reviews._users._kept)


async def test_strangers_do_not_push_out_users(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_review, "MAX_REMEMBERED", 8)
    reviews = TokenReviews(hook, seconds=60)
    user = await known(reviews, "good")
    for number in range(20):
        await known(reviews, f"wrong{number}")
    assert reviews.user_of("good") is user


async def test_the_webhook_is_told_our_audiences(hook: Hook) -> None:
    await known(TokenReviews(hook, seconds=60, audiences=("registry", "other")), "good")
    assert hook.asked[0]["spec"]["audiences"] == ["registry", "other"]


@pytest.mark.parametrize(
    ("ours", "theirs", "good"),
    [
        ((), ["elsewhere"], True),
        (("registry",), None, True),
        (("registry",), [], True),
        (("registry",), ["a", "registry"], True),
        (("registry",), ["elsewhere"], False),
    ],
)
def test_a_token_for_others_only_is_refused(ours: tuple[str, ...], theirs: list[str] | None, good: bool) -> None:  # noqa: FBT001
    answer = review(authenticated=True, user=USER, audiences=theirs)
    assert (read_review(answer, audiences=ours).user == JANE) is good


def test_a_webhook_may_name_the_group_of_all_users_itself() -> None:
    user = {"username": "jane", "groups": ["system:authenticated", "devs"]}
    found = read_review(review(authenticated=True, user=user), audiences=()).user
    assert found is not None
    assert found.groups == ("system:authenticated", "devs")


@pytest.mark.parametrize("status", [{}, {"authenticated": False}, {"authenticated": None, "user": USER}])
def test_only_an_authenticated_user_is_one(status: dict[str, Any]) -> None:
    assert read_review(review(**status), audiences=()).user is None


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"apiVersion": "authentication.k8s.io/v1beta1", "kind": "TokenReview"},
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SubjectAccessReview"},
        {**review(), "status": "yes"},
        review(authenticated="true", user=USER),
        review(authenticated=1, user=USER),
        review(authenticated=True),
        review(authenticated=True, user="jane"),
        review(authenticated=True, user={"username": ""}),
        review(authenticated=True, user={"username": ["jane"]}),
        review(authenticated=True, user={"username": "jane", "uid": 1}),
        review(authenticated=True, user={"username": "jane", "groups": "system:masters"}),
        review(authenticated=True, user={"username": "jane", "groups": [["system:masters"]]}),
        review(authenticated=True, user={"username": "jane", "extra": []}),
        review(authenticated=True, user={"username": "jane", "extra": {"a": "b"}}),
        review(authenticated=True, user=USER, audiences="registry"),
        review(authenticated=False, error=1),
    ],
)
def test_what_is_no_review_is_a_failure(answer: dict[str, Any]) -> None:
    with pytest.raises(CallFailed):
        read_review(answer, audiences=())


async def test_a_failure_can_be_an_error_of_its_own(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    state = HealthState("the host", consequence="503")
    reviews = TokenReviews(hook, seconds=60, state=state, on_failure=lambda why: errors.service_unavailable(str(why)))
    assert await known(reviews, "good") == JANE
    hook.failing = True
    assert reviews.user_of("good") == JANE  # remembered
    with pytest.raises(errors.APIError, match="down"):
        await known(reviews, "good too")
    assert state.problem() == "down"
    monkeypatch.setattr(singleflight, "MAX_UNDER_WAY", 0)
    with pytest.raises(errors.APIError, match="questions are waiting"):
        reviews.user_of("good too")


async def test_the_request_gets_that_error(hook: Hook) -> None:
    hook.failing = True
    reviews = TokenReviews(hook, seconds=60, on_failure=lambda why: errors.service_unavailable(str(why)))
    everybody = in_order(clients=Authorities(), tokens=[reviews], anonymous=True)
    outcome = everybody.authenticate(FakeRequest({"authorization": "Bearer good"}))
    assert isinstance(outcome, Awaitable)
    with pytest.raises(errors.APIError) as raised:
        await outcome
    assert raised.value.status["code"] == 503
