"""The handshake of a watch over a WebSocket: ``GET`` with ``Upgrade: websocket``, as browsers and some libraries do.

Every event is one message: text, or binary for protobuf. The checks, their order and their answers are those of
kube-apiserver, which has no subprotocol for watches: it agrees to whichever single one the client offers.
"""

from __future__ import annotations

import base64
import hashlib
import re
from http import HTTPStatus
from urllib.parse import urlsplit

from clusterregistry.apiserver.authn.websocket import offered_protocols
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.http.response import TEXT, Answer, Header, Response, Stream, WebSocketResponse

_VERSION = b"13"
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455, 1.3."""
_PROTOCOL = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
"""A token, and no long one: it is sent back."""


def is_requested(request: Request) -> bool:
    """Whether the client asks to switch to a WebSocket."""
    if request.header("upgrade").lower() != "websocket":
        return False
    options = ",".join(request.header_values("connection")).lower()
    return any(option.strip() == "upgrade" for option in options.split(","))


def switch(request: Request, stream: Stream, *, is_binary: bool = False) -> Answer:
    """Agrees to the switch, after which the stream is sent; a wrong handshake is 400, a wrong origin 403.

    ``is_binary``: see ``WebSocketResponse``.
    """
    key = request.header("sec-websocket-key")
    if not key:
        return _refusal(HTTPStatus.BAD_REQUEST, b"mismatch challenge/response")
    if request.header("sec-websocket-version") != _VERSION.decode():
        return _refusal(
            HTTPStatus.BAD_REQUEST, b"missing or bad WebSocket Version", (b"sec-websocket-version", _VERSION)
        )
    if not _is_good_origin(request.header("origin")):
        return _refusal(HTTPStatus.FORBIDDEN, b"")
    protocols = offered_protocols(request)
    if len(protocols) > 1 or not all(map(_PROTOCOL.fullmatch, protocols)):
        return _refusal(HTTPStatus.BAD_REQUEST, b"offer one subprotocol, or none")
    headers: list[Header] = [
        (b"upgrade", b"websocket"),
        (b"connection", b"Upgrade"),
        (b"sec-websocket-accept", _accept(key)),
        *((b"sec-websocket-protocol", protocol.encode()) for protocol in protocols),
    ]
    return WebSocketResponse(HTTPStatus.SWITCHING_PROTOCOLS, b"", stream, headers, is_binary=is_binary)


def _accept(key: str) -> bytes:
    """What proves that the server has understood the key."""
    digest = hashlib.sha1(key.encode("latin-1") + _GUID, usedforsecurity=False).digest()
    return base64.b64encode(digest)


def _is_good_origin(origin: str) -> bool:
    """Any URL is good: the client's credentials decide. A browser sends ``null`` for pages without an address.

    kube-apiserver demands an origin. Clients that are no browsers have none, and nothing depends on it.
    """
    try:
        return not origin or origin.startswith("/") or bool(urlsplit(origin).scheme)
    except ValueError:
        return False


def _refusal(status: HTTPStatus, body: bytes, *headers: Header) -> Response:
    return Response(status, TEXT, (body,), list(headers))
