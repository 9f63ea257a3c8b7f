"""The handshake of a watch over a WebSocket. The answers are those of kube-apiserver."""

from __future__ import annotations

import pytest

from clusterregistry.apiserver.endpoints import websocket
from clusterregistry.apiserver.http.response import Answer, Outlet, Response, WebSocketResponse
from tests.apiserver.server.requests import BareRequest

UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket"}
HANDSHAKE = UPGRADE | {
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
    "Origin": "https://127.0.0.1",
}
TOKEN = "base64url.bearer.authorization.k8s.io.eA"


async def stream(outlet: Outlet) -> None: ...


def answered(*further: tuple[str, str], **changed: str | None) -> Answer:
    headers = HANDSHAKE | {name.replace("_", "-"): value for name, value in changed.items()}
    given = [(name, value) for name, value in headers.items() if value is not None]
    return websocket.switch(BareRequest(*given, *further), stream)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("Connection", "Upgrade"), ("Upgrade", "websocket")], True),
        ([("Connection", "keep-alive, upgrade"), ("Upgrade", "WebSocket")], True),
        ([("Connection", "keep-alive"), ("Connection", "Upgrade"), ("Upgrade", "websocket")], True),
        ([("Connection", "Upgraded"), ("Upgrade", "websocket")], False),
        ([("Connection", "Upgrade"), ("Upgrade", "h2c")], False),
        ([("Upgrade", "websocket")], False),
        ([], False),
    ],
)
def test_a_websocket_is_asked_for_by_two_headers(headers: list[tuple[str, str]], *, expected: bool) -> None:
    assert websocket.is_requested(BareRequest(*headers)) is expected


def test_the_key_is_answered_as_the_rfc_says() -> None:
    answer = answered()
    assert isinstance(answer, WebSocketResponse)
    assert answer.status == 101
    assert dict(answer.headers) == {
        b"upgrade": b"websocket",
        b"connection": b"Upgrade",
        b"sec-websocket-accept": b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    }


@pytest.mark.parametrize("offered", ["v1", "base64.binary.k8s.io", f"{TOKEN}, v1", f"v1,{TOKEN}"])
def test_a_single_subprotocol_is_agreed_to_and_a_token_is_none(offered: str) -> None:
    answer = answered(("Sec-WebSocket-Protocol", offered))
    assert dict(answer.headers)[b"sec-websocket-protocol"].decode() in {"v1", "base64.binary.k8s.io"}


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Sec_WebSocket_Key": None}, 400),
        ({"Sec_WebSocket_Version": None}, 400),
        ({"Sec_WebSocket_Version": "8"}, 400),
        ({"Sec_WebSocket_Protocol": "v1, v2"}, 400),
        ({"Sec_WebSocket_Protocol": "a b"}, 400),
        ({"Sec_WebSocket_Protocol": "x" * 257}, 400),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
    ],
)
def test_a_wrong_handshake_is_refused(changed: dict[str, str | None], status: int) -> None:
    answer = answered(**changed)
    assert isinstance(answer, Response)
    assert answer.status == status


def test_another_version_is_told_the_right_one() -> None:
    assert (b"sec-websocket-version", b"13") in answered(Sec_WebSocket_Version="8").headers


def test_a_client_that_is_no_browser_needs_no_origin() -> None:
    assert answered(Origin=None).status == 101
