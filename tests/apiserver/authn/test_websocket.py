"""Bearer tokens among the subprotocols of a WebSocket."""

from __future__ import annotations

import base64
from collections.abc import Awaitable

import pytest

from clusterregistry.apiserver.authn.bearer import BearerTokens
from clusterregistry.apiserver.authn.interface import CredentialRefused
from clusterregistry.apiserver.authn.websocket import WebSocketTokens, offered_protocols
from tests.apiserver.authn.requests import FakeRequest
from tests.apiserver.authn.test_bearer import JANE, OneToken, Slow

PREFIX = "base64url.bearer.authorization.k8s.io."


def protocol(token: bytes | str) -> str:
    encoded = base64.urlsafe_b64encode(token.encode() if isinstance(token, str) else token)
    return PREFIX + encoded.decode().rstrip("=")


def offering(*protocols: str, upgrade: str = "websocket") -> FakeRequest:
    return FakeRequest({"upgrade": upgrade, "sec-websocket-protocol": list(protocols)})


GOOD = protocol("good")


@pytest.mark.parametrize(
    "request_",
    [
        offering(f"{GOOD}, v1"),
        offering(f"v1,{GOOD}"),
        offering("v1", GOOD),
        offering(f"v1, {GOOD}, v2", upgrade="WebSocket"),
    ],
)
def test_the_token_is_one_of_the_subprotocols(request_: FakeRequest) -> None:
    assert WebSocketTokens(BearerTokens([OneToken()])).authenticate(request_) is JANE
    assert all(not offered.startswith(PREFIX) for offered in offered_protocols(request_))


@pytest.mark.parametrize("token", ["o", "tö", "a token?>", "x" * 1000])
def test_every_text_can_be_a_token(token: str) -> None:
    source = OneToken(token)
    assert WebSocketTokens(BearerTokens([source])).authenticate(offering(protocol(token), "v1")) is JANE


async def test_a_source_may_have_to_call_another_server() -> None:
    asked = WebSocketTokens(BearerTokens([Slow("good")])).authenticate(offering(GOOD, "v1"))
    assert isinstance(asked, Awaitable)
    assert await asked is JANE


@pytest.mark.parametrize(
    "request_", [offering("v1"), offering(), offering(GOOD, "v1", upgrade="h2c"), offering(PREFIX, "v1")]
)
def test_what_has_no_token_is_left_to_others(request_: FakeRequest) -> None:
    assert WebSocketTokens(BearerTokens([OneToken()])).authenticate(request_) is None


@pytest.mark.parametrize(
    "request_",
    [
        offering(protocol("bad"), "v1"),
        offering(GOOD),
        offering(GOOD, GOOD, "v1"),
        offering(PREFIX + "Z29vZA==", "v1"),
        offering(PREFIX + "Z29v ZA", "v1"),
        offering(PREFIX + "a", "v1"),
        offering(protocol(b"\xff\xfe"), "v1"),
    ],
)
def test_a_wrong_token_is_refused(request_: FakeRequest) -> None:
    with pytest.raises(CredentialRefused) as refused:
        WebSocketTokens(BearerTokens([OneToken()])).authenticate(request_)
    assert refused.value.code == 401
    assert "good" not in refused.value.describe()
