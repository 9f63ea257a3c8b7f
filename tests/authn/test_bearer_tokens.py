from __future__ import annotations

import pytest

from clusterregistry.apis.meta.errors import APIError
from clusterregistry.authn import bearer
from clusterregistry.authn.bearer import BearerTokens
from clusterregistry.authn.users import User
from tests.authn.requests import FakeRequest, with_authorization

JANE = User("jane", "1", ("devs",))


class OneToken:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def user_of(self, token: str) -> User | None:
        self.asked.append(token)
        return JANE if token == "good" else None


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


def test_a_header_seen_before_is_not_looked_up_again() -> None:
    source = OneToken()
    tokens = BearerTokens([source])
    for _ in range(3):
        tokens.authenticate(with_authorization("Bearer good"))
    assert source.asked == ["good"]


def test_an_unknown_token_is_not_remembered() -> None:
    source = OneToken()
    tokens = BearerTokens([source])
    for _ in range(2):
        with pytest.raises(APIError):
            tokens.authenticate(with_authorization("Bearer wrong"))
    assert source.asked == ["wrong", "wrong"]


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bearer, "MAX_REMEMBERED", 3)
    tokens = BearerTokens([OneToken()])
    for spelling in range(10):
        tokens.authenticate(with_authorization(f"Bearer good {spelling}"))
    assert len(tokens._users) <= 3


def test_no_header_is_no_token() -> None:
    assert BearerTokens([OneToken()]).authenticate(FakeRequest()) is None
