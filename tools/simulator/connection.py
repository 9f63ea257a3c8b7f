"""One connection to a simulated member: HTTP/1.1 on httptools, and the faults of responses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING, cast

import httptools

from tools.simulator import api
from tools.simulator.api import Answer, Received
from tools.simulator.faults import Fault

if TYPE_CHECKING:
    from tools.simulator.member import SimulatedMember

HUGE_BYTES = 60_000_000
_PIECE = 65536
_PIECES_A_TURN = 16
_DRIP_SECONDS = 0.5
_SLOW_SECONDS = 2.0
_RETRY_AFTER = 7
_DEPTH = 100_000
_VALUES = 1_000_000


class Connection(asyncio.Protocol):
    """Answers requests one after the other."""

    def __init__(self, member: SimulatedMember) -> None:
        self._member = member
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._target, self._headers = b"", dict[bytes, bytes]()
        self._certificate = ""
        self._pieces: Iterator[bytes] = iter(())
        self._timer: asyncio.TimerHandle | None = None
        self._may_write = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._certificate = _common_name(transport.get_extra_info("peercert"))
        self._member.opened(self, certificate=self._certificate)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - whatever it was
        self._pieces = iter(())
        if self._timer is not None:
            self._timer.cancel()
        self._member.closed(self)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()

    def pause_writing(self) -> None:
        self._may_write = False

    def resume_writing(self) -> None:
        self._may_write = True
        self._write_pieces()

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        self._target, self._headers = b"", {}

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_message_complete(self) -> None:
        received = Received(
            method=self._parser.get_method().decode(),
            target=self._target.decode("latin-1"),
            authorization=self._headers.get(b"authorization", b"").decode("latin-1"),
            certificate=self._certificate,
            accept=self._headers.get(b"accept", b"").decode("latin-1"),
        )
        self._member.received(received)
        self._respond(received)

    # Responses

    def _respond(self, received: Received) -> None:
        fault = self._member.fault
        special = _SPECIAL.get(fault)
        if special is not None:
            special(self, received)
        else:
            self._write(_answer(self._member, received))

    def _write(self, answer: Answer) -> None:
        if self._transport is not None:
            self._transport.write(_encode(answer))

    def write_later(self, received: Received) -> None:
        answer = self._member.answer(received)
        self._timer = asyncio.get_running_loop().call_later(_SLOW_SECONDS, self._write, answer)

    def drip(self, received: Received) -> None:
        self._drip_byte(iter(_encode(self._member.answer(received))))

    def _drip_byte(self, rest: Iterator[int]) -> None:
        byte = next(rest, None)
        if byte is not None and self._transport is not None:
            self._transport.write(bytes([byte]))
            self._timer = asyncio.get_running_loop().call_later(_DRIP_SECONDS, self._drip_byte, rest)

    def cut(self, received: Received) -> None:
        encoded = _encode(self._member.answer(received))
        if self._transport is not None:
            self._transport.write(encoded[: len(encoded) - 1])
            self._transport.close()

    def close(self, _: Received) -> None:
        if self._transport is not None:
            self._transport.close()

    def say_nothing(self, _: Received) -> None:
        pass

    def endless(self, _: Received) -> None:
        self._stream(repeat(b"%x\r\n%s\r\n" % (_PIECE, b"x" * _PIECE)), length=None)

    def huge(self, _: Received) -> None:
        self._stream(_huge_json(), length=HUGE_BYTES)

    def huge_chunked(self, _: Received) -> None:
        chunks = (b"%x\r\n%s\r\n" % (len(piece), piece) for piece in _huge_json())
        self._stream(_followed_by(chunks, b"0\r\n\r\n"), length=None)

    def _stream(self, pieces: Iterable[bytes], *, length: int | None) -> None:
        size = b"transfer-encoding: chunked" if length is None else b"content-length: %d" % length
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + size + b"\r\n\r\n"
        self._pieces = _following(head, pieces)
        self._write_pieces()

    def _write_pieces(self) -> None:
        """Some pieces in each turn of the loop: only there a transport notices that its client is gone."""
        for _ in range(_PIECES_A_TURN):
            if not self._may_write or self._transport is None or self._transport.is_closing():
                return
            piece = next(self._pieces, None)
            if piece is None:
                return
            self._member.sent_bytes += len(piece)
            self._transport.write(piece)
        self._timer = asyncio.get_running_loop().call_later(0.0, self._write_pieces)

    def no_http(self, _: Received) -> None:
        if self._transport is not None:
            self._transport.write(b"SSH-2.0-simulated\r\n" * 4)
            self._transport.close()

    def huge_header(self, _: Received) -> None:
        if self._transport is not None:
            self._transport.write(b"HTTP/1.1 200 OK\r\nx-simulated: " + b"x" * (1 << 20) + b"\r\n\r\n")


_SPECIAL: dict[Fault, Callable[[Connection, Received], None]] = {
    Fault.SILENT: Connection.say_nothing,
    Fault.TLS_SILENT: Connection.say_nothing,
    Fault.SLOW: Connection.write_later,
    Fault.SLOW_BYTES: Connection.drip,
    Fault.CUT: Connection.cut,
    Fault.CLOSE: Connection.close,
    Fault.ENDLESS_BODY: Connection.endless,
    Fault.HUGE_JSON: Connection.huge,
    Fault.HUGE_CHUNKED_JSON: Connection.huge_chunked,
    Fault.NO_HTTP: Connection.no_http,
    Fault.HUGE_HEADER: Connection.huge_header,
}


def _answer(member: SimulatedMember, received: Received) -> Answer:
    fault = member.fault
    made = _ANSWERS.get(fault)
    if made is not None:
        return made(received)
    if fault is Fault.REDIRECT:
        return Answer(307, headers={"location": f"{member.redirect_to}{received.target}"})
    if fault is Fault.FLAPPING and received.path == "/readyz" and member.readyz_count % 2 == 0:
        return api.not_ready()
    if fault is Fault.NOT_READY and received.path == "/readyz":
        return api.not_ready()
    return member.answer(received)


_ANSWERS: dict[Fault, Callable[[Received], Answer]] = {
    Fault.UNAUTHORIZED: lambda _: api.UNAUTHORIZED,
    Fault.FORBIDDEN: api.forbidden,
    Fault.TOO_MANY_REQUESTS: lambda _: api.failure(429, "TooManyRequests", "simulated", retry_after=_RETRY_AFTER),
    Fault.INTERNAL_ERROR: lambda _: api.failure(500, "InternalError", "simulated"),
    Fault.UNAVAILABLE: lambda _: Answer(503, b"<html>simulated proxy</html>", "text/html"),
    Fault.DEEP_JSON: lambda _: Answer(body=b'{"kind":"NodeList","items":' + b"[" * _DEPTH + b"]" * _DEPTH + b"}"),
    Fault.MANY_VALUES: lambda _: Answer(body=b'{"kind":"NodeList","items":[' + b"{}," * _VALUES + b"{}]}"),
    Fault.NO_JSON: lambda _: Answer(body=b"<html>simulated</html>", content_type="text/html"),
    Fault.ECHO: lambda received: api.failure(403, "Forbidden", f"refused: {received.authorization}"),
}


def _encode(answer: Answer) -> bytes:
    fields = {"content-type": answer.content_type, "content-length": str(len(answer.body)), **answer.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {answer.status} Simulated\r\nx-simulated: true\r\n{head}\r\n".encode() + answer.body


def _huge_json() -> Iterator[bytes]:
    """HUGE_BYTES bytes of a list of texts."""
    start, end = b'{"kind":"NodeList","items":["', b'"]}'
    yield start
    rest = HUGE_BYTES - len(start) - len(end)
    while rest:
        piece = b"x" * min(rest, _PIECE)
        rest -= len(piece)
        yield piece
    yield end


def _following(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _followed_by(first: Iterable[bytes], last: bytes) -> Iterator[bytes]:
    yield from first
    yield last


def _common_name(certificate: object) -> str:
    if not isinstance(certificate, dict):
        return ""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        for part in certificate["subject"]:
            for name, value in part:
                if name == "commonName":
                    return str(value)
    return ""
