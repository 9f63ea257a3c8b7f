"""Writes responses: whole, in pieces, or as a stream in chunks."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import (
    TEXT,
    Answer,
    Response,
    SharedPiece,
    StreamResponse,
    WebSocketResponse,
)
from clusterregistry.apiserver.http.transport import ClientTransport

_SINGLE_WRITE = 64 * 1024
"""Bytes of a body that is sent in one write with its head: each write is a TLS record and a system call."""

_BURST = 128 * 1024
"""Bytes of a large body that are written before others have their turn.

They take about a quarter of a millisecond. With a turn after each piece, which is half as large, lists cost 3% more.
"""

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}".encode() for status in HTTPStatus}
_CLOSE = b"connection: close"
_LAST_CHUNK = b"0\r\n\r\n"

_REFUSALS = {
    HTTPStatus.BAD_REQUEST: b"Invalid HTTP request received.",
    HTTPStatus.REQUEST_TIMEOUT: b"The head of the request did not come in time.",
    HTTPStatus.REQUEST_URI_TOO_LONG: b"Request-URI Too Long",
    HTTPStatus.EXPECTATION_FAILED: b"Nothing can be expected but 100-continue.",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: b"Request Header Fields Too Large",
    HTTPStatus.NOT_IMPLEMENTED: b"Unsupported transfer encoding",
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED: b"HTTP Version Not Supported",
}


def refusal(status: HTTPStatus, date: bytes) -> bytes:
    """The response to malformed input, after which the connection is closed."""
    return _whole(Response(status, TEXT, (_REFUSALS[status],)), date, keep_alive=False)


async def send(
    answer: Answer, request: IncomingRequest, transport: ClientTransport, *, date: bytes, keep_alive: bool
) -> None:
    """Writes a response as fast as the client reads, or until the client has left."""
    await transport.drain()
    if isinstance(answer, StreamResponse):
        transport.write(_stream_head(answer, date, keep_alive=keep_alive, in_chunks=request.takes_chunks))
        await _send_stream(answer, transport, in_chunks=request.takes_chunks)
    elif not send_at_once(answer, request, transport, date=date, keep_alive=keep_alive):
        await _send_pieces(_head(answer, date, keep_alive=keep_alive), answer, transport)


def send_at_once(
    answer: Answer, request: IncomingRequest, transport: ClientTransport, *, date: bytes, keep_alive: bool
) -> bool:
    """Writes a response and returns True, if that takes one write and the write buffer has room."""
    if not transport.is_writable or not isinstance(answer, Response):
        return False
    if request.method == "HEAD":
        transport.write(_head(answer, date, keep_alive=keep_alive))
    elif answer.length <= _SINGLE_WRITE:
        transport.write(_whole(answer, date, keep_alive=keep_alive))
    else:
        return False
    return True


def _whole(answer: Response, date: bytes, *, keep_alive: bool) -> bytes:
    return b"".join((_head(answer, date, keep_alive=keep_alive), *answer.body))


def _head(answer: Response, date: bytes, *, keep_alive: bool) -> bytes:
    lines = [_STATUS_LINES[answer.status], date, b"content-length: %d" % answer.length]
    lines.extend(map(b": ".join, answer.headers))
    if answer.content_type:
        lines.append(b"content-type: " + answer.content_type)
    if not keep_alive:
        lines.append(_CLOSE)
    return _joined(lines)


def _stream_head(answer: StreamResponse, date: bytes, *, keep_alive: bool, in_chunks: bool) -> bytes:
    lines = [_STATUS_LINES[answer.status], date, b"content-type: " + answer.content_type]
    for name, value in answer.headers:
        lines.append(name + b": " + value)
    if not keep_alive:
        lines.append(_CLOSE)
    if in_chunks:
        lines.append(b"transfer-encoding: chunked")
    return _joined(lines)


def switch_head(answer: WebSocketResponse, date: bytes) -> bytes:
    """The head after which the connection is a WebSocket. Raises ValueError as ``_joined``."""
    return _joined([_STATUS_LINES[answer.status], date, *map(b": ".join, answer.headers)])


def _joined(lines: list[bytes]) -> bytes:
    """The whole head. Raises ValueError if a header's value holds a line break, and thus another header."""
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) - 1:
        raise ValueError("a response header has more than one line")
    return head + b"\r\n\r\n"


async def _send_pieces(head: bytes, answer: Response, transport: ClientTransport) -> None:
    """Writes the head with the first piece, then the other pieces."""
    written = 0
    for piece in answer.body:
        if not transport.is_writable:
            await transport.drain()
        if transport.is_closing:
            return
        transport.write(head + piece if head else piece)
        head, written = b"", written + len(piece)
        if written >= _BURST:
            # A socket that takes everything never makes us wait: other requests have their turn here.
            await asyncio.sleep(0)
            written = 0


async def _send_stream(answer: StreamResponse, transport: ClientTransport, *, in_chunks: bool) -> None:
    """Writes chunks, or, for a client of HTTP/1.0, plain bytes until the connection is closed."""
    await answer.stream(_ChunkedOutlet(transport) if in_chunks else _PlainOutlet(transport))
    await transport.drain()
    if in_chunks and not transport.is_closing:
        transport.write(_LAST_CHUNK)


class _PlainOutlet:
    """An outlet for clients of HTTP/1.0."""

    __slots__ = ("_transport",)

    def __init__(self, transport: ClientTransport) -> None:
        self._transport = transport

    async def send(self, data: bytes) -> None:
        await self._transport.drain()
        if data and not self._transport.is_closing:
            self._transport.write(data)

    def offer(self, batch: SharedPiece) -> bool:
        return self._transport.write_at_once(batch.data)


class _ChunkedOutlet(_PlainOutlet):
    """An outlet that writes each piece as a chunk."""

    __slots__ = ()

    async def send(self, data: bytes) -> None:
        if data:  # an empty chunk would be the last one
            await super().send(_chunk(data))

    def offer(self, batch: SharedPiece) -> bool:
        chunk = batch.on_the_wire
        if chunk is None:
            chunk = batch.on_the_wire = _chunk(batch.data)
        return self._transport.write_at_once(chunk)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
