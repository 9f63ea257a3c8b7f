from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.bearer import BearerTokens
from clusterregistry.apiserver.authn.interface import Authenticator, AuthRequest
from clusterregistry.apiserver.authn.token_file import TokenFile
from clusterregistry.apiserver.authn.union import Anonymous, Union, in_order
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authn.x509 import ClientCertificates
from tests.apiserver.authn.certificates import CN, END, START, clients, der
from tests.apiserver.authn.requests import FakeRequest, with_authorization


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    path = tmp_path / "tokens.csv"
    path.write_text("good,joe,1\n")
    return TokenFile(path)


def union(tokens: TokenFile, *, at: float = START + 1) -> Union:
    return Union((ClientCertificates(clients(), lambda: at), BearerTokens([tokens])), fallback=Anonymous())


def name_of(authenticator: Union, request: FakeRequest) -> str:
    user = authenticator.authenticate(request)
    assert isinstance(user, User)
    return user.name


def test_a_certificate_counts_before_a_token(tokens: TokenFile) -> None:
    request = FakeRequest({"authorization": "Bearer good"}, (der((CN, "jane")),))
    assert name_of(union(tokens), request) == "jane"


def test_a_bad_token_does_not_hide_a_good_certificate(tokens: TokenFile) -> None:
    request = FakeRequest({"authorization": "Bearer wrong"}, (der((CN, "jane")),))
    assert name_of(union(tokens), request) == "jane"


def test_an_ended_certificate_does_not_hide_a_good_token(tokens: TokenFile) -> None:
    request = FakeRequest({"authorization": "Bearer good"}, (der((CN, "jane")),))
    assert name_of(union(tokens, at=END + 1), request) == "joe"


def test_bad_credentials_are_refused_rather_than_anonymous(tokens: TokenFile) -> None:
    with pytest.raises(APIError) as raised:
        in_order(clients=clients(), tokens=[tokens], anonymous=True).authenticate(with_authorization("Bearer wrong"))
    assert raised.value.code == 401


@pytest.mark.parametrize("value", ["", "Basic YTpi", "Bearer "])
def test_no_credentials_are_anonymous(tokens: TokenFile, value: str) -> None:
    user = in_order(clients=clients(), tokens=[tokens], anonymous=True).authenticate(with_authorization(value))
    assert isinstance(user, User)
    assert user.name == "system:anonymous"
    assert user.groups == ("system:unauthenticated",)


@pytest.mark.parametrize("value", ["", "Basic YTpi", "Bearer "])
def test_no_credentials_are_refused_when_anonymous_is_off(tokens: TokenFile, value: str) -> None:
    with pytest.raises(APIError) as raised:
        in_order(clients=clients(), tokens=[tokens], anonymous=False).authenticate(with_authorization(value))
    assert raised.value.code == 401


def test_a_token_works_when_anonymous_is_off(tokens: TokenFile) -> None:
    assert (
        name_of(in_order(clients=clients(), tokens=[tokens], anonymous=False), with_authorization("Bearer good"))
        == "joe"
    )


class Later:
    """Somebody who has to ask elsewhere first: answers ``user``, or refuses."""

    def __init__(self, user: User | None = None, *, refuses: bool = False) -> None:
        self._user = user
        self._refuses = refuses

    async def authenticate(self, request: AuthRequest) -> User | None:  # noqa: ARG002
        await asyncio.sleep(0)
        if self._refuses:
            raise errors.unauthorized()
        return self._user


async def waited_for(*authenticators: Authenticator) -> User | None:
    outcome = Union(authenticators, fallback=Anonymous()).authenticate(FakeRequest())
    assert not isinstance(outcome, User)
    assert outcome is not None
    return await outcome


JANE = User("jane")


async def test_a_user_that_takes_time_is_waited_for() -> None:
    assert await waited_for(Later(JANE), Later(User("joe"))) == JANE


async def test_those_behind_one_that_takes_time_are_asked_too() -> None:
    assert await waited_for(Later(), Later(JANE)) == JANE
    assert await waited_for(Later(refuses=True), Later(), Later(JANE)) == JANE


async def test_nobody_who_took_time_knowing_the_user_is_anonymous_or_refused() -> None:
    user = await waited_for(Later(), Later())
    assert user is not None
    assert user.name == "system:anonymous"
    with pytest.raises(APIError) as raised:
        await waited_for(Later(refuses=True), Later())
    assert raised.value.code == 401
