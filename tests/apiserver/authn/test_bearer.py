from __future__ import annotations

from collections.abc import Awaitable

import pytest

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.bearer import BearerTokens, TokenAuthenticator
from clusterregistry.apiserver.authn.user import User
from tests.apiserver.authn.requests import FakeRequest, with_authorization

JANE = User("jane", "1", ("devs",))


class OneToken:
    def __init__(self, good: str = "good") -> None:
        self.good = good
        self.asked: list[str] = []

    def user_of(self, token: str) -> User | None:
        self.asked.append(token)
        return JANE if token == self.good else None


class Slow:
    """One that has to ask somebody else first."""

    def __init__(self, good: str) -> None:
        self.source = OneToken(good)
        self.asked = self.source.asked

    async def user_of(self, token: str) -> User | None:
        return self.source.user_of(token)


@pytest.mark.parametrize("value", ["Bearer good", "bearer good", "BEARER good", "  Bearer good  ", "Bearer good more"])
def test_a_known_token_is_its_user(value: str) -> None:
    assert BearerTokens([OneToken()]).authenticate(with_authorization(value)) is JANE


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Bearer  good", "Basic YTpi", "good", "Bearergood", " "])
def test_what_is_no_bearer_token_is_left_to_others(value: str) -> None:
    assert BearerTokens([OneToken()]).authenticate(with_authorization(value)) is None


@pytest.mark.parametrize("sources", [[], [OneToken()]])
def test_an_unknown_token_is_refused(sources: list[OneToken]) -> None:
    with pytest.raises(APIError) as raised:
        BearerTokens(sources).authenticate(with_authorization("Bearer wrong"))
    assert raised.value.code == 401
    assert raised.value.status["message"] == "Unauthorized"


def test_what_a_source_knows_no_more_is_refused_at_once() -> None:
    source = OneToken()
    tokens = BearerTokens([source])
    assert tokens.authenticate(with_authorization("Bearer good")) is JANE
    source.good = "another"
    with pytest.raises(APIError):
        tokens.authenticate(with_authorization("Bearer good"))


async def test_a_source_may_take_its_time() -> None:
    assert await later(BearerTokens([Slow("good")]), "good") is JANE


async def test_a_token_that_a_slow_source_does_not_know_is_refused() -> None:
    with pytest.raises(APIError) as raised:
        await later(BearerTokens([Slow("good")]), "wrong")
    assert raised.value.code == 401


@pytest.mark.parametrize("second", [True, False])
async def test_sources_are_asked_in_order_until_one_knows_the_token(second: bool) -> None:  # noqa: FBT001
    first, last, unasked = Slow("other"), Slow("good") if second else OneToken(), OneToken()
    sources: list[TokenAuthenticator] = [OneToken("nothing"), first, last, unasked]
    assert await later(BearerTokens(sources), "good") is JANE
    assert (first.asked, last.asked, unasked.asked) == (["good"], ["good"], [])


async def test_a_slow_source_that_does_not_know_a_token_leaves_it_to_nobody_at_last() -> None:
    with pytest.raises(APIError):
        await later(BearerTokens([Slow("other"), OneToken()]), "wrong")


async def later(tokens: BearerTokens, token: str) -> User | None:
    outcome = tokens.authenticate(with_authorization(f"Bearer {token}"))
    assert isinstance(outcome, Awaitable)
    return await outcome


def test_no_header_is_no_token() -> None:
    assert BearerTokens([OneToken()]).authenticate(FakeRequest()) is None
