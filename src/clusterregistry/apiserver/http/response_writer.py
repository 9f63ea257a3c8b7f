"""The bytes of answers: whole, in pieces, or as a stream in chunks."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import TEXT, Answer, Response, StreamResponse
from clusterregistry.apiserver.http.transport import ClientTransport
from clusterregistry.apiserver.registry.watcher import Batch

_AT_ONCE = 64 * 1024
"""Bytes of a body up to which it leaves in one write with its head: each write is a TLS record and a system call."""

_WITHOUT_A_PAUSE = 128 * 1024
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
    """The answer to what is no request, after which the connection is closed."""
    return _whole(Response(status, TEXT, (_REFUSALS[status],)), date, keep_alive=False)


async def send(
    answer: Answer, request: IncomingRequest, wire: ClientTransport, *, date: bytes, keep_alive: bool
) -> None:
    """Writes an answer as fast as the client reads, or until it has left."""
    await wire.drain()
    if isinstance(answer, StreamResponse):
        wire.write(_stream_head(answer, date, keep_alive=keep_alive, in_chunks=request.takes_chunks))
        await _send_stream(answer, wire, in_chunks=request.takes_chunks)
    elif not send_at_once(answer, request, wire, date=date, keep_alive=keep_alive):
        await _send_pieces(_head(answer, date, keep_alive=keep_alive), answer, wire)


def send_at_once(
    answer: Answer, request: IncomingRequest, wire: ClientTransport, *, date: bytes, keep_alive: bool
) -> bool:
    """Writes an answer if that is one write and there is room for it, and says whether it did."""
    if not wire.writable or not isinstance(answer, Response):
        return False
    if request.method == "HEAD":
        wire.write(_head(answer, date, keep_alive=keep_alive))
    elif answer.length <= _AT_ONCE:
        wire.write(_whole(answer, date, keep_alive=keep_alive))
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


def _joined(lines: list[bytes]) -> bytes:
    """The whole head. Raises ValueError rather than let a header's value hold another header."""
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) - 1:
        raise ValueError("a header of an answer has more than one line")
    return head + b"\r\n\r\n"


async def _send_pieces(head: bytes, answer: Response, wire: ClientTransport) -> None:
    """The head leaves with the first piece."""
    written = 0
    for piece in answer.body:
        if not wire.writable:
            await wire.drain()
        if wire.closing:
            return
        wire.write(head + piece if head else piece)
        head, written = b"", written + len(piece)
        if written >= _WITHOUT_A_PAUSE:
            # A socket that takes everything never makes us wait: give the others their turn.
            await asyncio.sleep(0)
            written = 0


async def _send_stream(answer: StreamResponse, wire: ClientTransport, *, in_chunks: bool) -> None:
    """In chunks, or for those who do not know them until the connection is closed."""
    await answer.stream(_Chunks(wire) if in_chunks else _Plain(wire))
    await wire.drain()
    if in_chunks and not wire.closing:
        wire.write(_LAST_CHUNK)


class _Plain:
    """An outlet for clients that know no chunks."""

    __slots__ = ("_wire",)

    def __init__(self, wire: ClientTransport) -> None:
        self._wire = wire

    async def send(self, data: bytes) -> None:
        await self._wire.drain()
        if data and not self._wire.closing:
            self._wire.write(data)

    def offer(self, batch: Batch) -> bool:
        return self._wire.write_at_once(batch.data)


class _Chunks(_Plain):
    """An outlet that makes a chunk of each piece."""

    __slots__ = ()

    async def send(self, data: bytes) -> None:
        if data:  # an empty chunk would be the last one
            await super().send(_chunk(data))

    def offer(self, batch: Batch) -> bool:
        chunk = batch.on_the_wire
        if chunk is None:
            chunk = batch.on_the_wire = _chunk(batch.data)
        return self._wire.write_at_once(chunk)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
