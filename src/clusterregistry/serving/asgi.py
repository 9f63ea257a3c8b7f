"""Between ASGI and the chain: makes a Request of what the web server gives, and sends the Answer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any

from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer, Response, StreamResponse

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

ABORT_EXTENSION = "clusterregistry.abort"
"""Ends a connection at once, whatever waits to be written: for clients that do not read."""


class ClientGoneError(Exception):
    """The client left before its request was complete: there is nobody to answer."""


class Application:
    """The ASGI application around a chain of filters."""

    def __init__(self, chain: Callable[[Request], Awaitable[Answer]]) -> None:
        self._chain = chain

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        request = _request(scope, receive)
        try:
            answer = await self._chain(request)
        except ClientGoneError:
            return
        if isinstance(answer, Response):
            await _send_response(answer, send)
        else:
            await _send_stream(answer, send)


def _request(scope: Message, receive: Receive) -> Request:
    async def read_body() -> tuple[bytes, bool]:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        return message.get("body", b""), message.get("more_body", False)

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    extensions = scope.get("extensions") or {}
    return Request(
        method=scope["method"],
        path=scope["path"],
        query_string=scope["query_string"],
        headers=scope["headers"],
        read_body=read_body,
        disconnected=disconnected,
        client_certificate=_client_certificate(extensions.get("tls")),
        abort=extensions.get(ABORT_EXTENSION),
    )


def _client_certificate(tls: MutableMapping[str, Any] | None) -> bytes | None:
    chain = tls.get("client_cert_chain") if tls else None
    return _der(chain[0]) if chain else None


@lru_cache(maxsize=1024)
def _der(pem: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem)


async def _send_response(answer: Response, send: Send) -> None:
    headers = [(b"content-length", str(answer.length).encode()), *answer.headers]
    if answer.content_type:
        headers.append((b"content-type", answer.content_type))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    last = len(answer.body) - 1
    for index, piece in enumerate(answer.body):
        await send({"type": "http.response.body", "body": piece, "more_body": index < last})
        if index < last:
            # A socket that takes data never makes send wait: give the others their turn.
            await asyncio.sleep(0)
    if last < 0:
        await send({"type": "http.response.body", "body": b""})


async def _send_stream(answer: StreamResponse, send: Send) -> None:
    headers = [(b"content-type", answer.content_type), *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})

    async def send_piece(data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})

    await answer.stream(send_piece)
    await send({"type": "http.response.body", "body": b""})
