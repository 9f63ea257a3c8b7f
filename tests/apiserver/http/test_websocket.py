"""Streams over a WebSocket: messages to the client, and what is made of the frames of the client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

import pytest

from clusterregistry.apiserver.http import websocket
from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import Answer, Outlet, WebSocketResponse, text_response
from clusterregistry.apiserver.http.websocket import FRAMES_PER_SECOND, MAX_FRAMES, MAX_MESSAGE, text_messages
from clusterregistry.apiserver.registry.watcher import Batch
from tests.apiserver.http.http_servers import PATIENCE, Gate, RawClient, Served, get, serving, within

UPGRADE = ("Connection: keep-alive, Upgrade", "Upgrade: WebSocket")
TEXT, BINARY, CLOSE, PING, PONG = 0x81, 0x82, 0x88, 0x89, 0x8A
MASK = b"\x01\x02\x03\x04"


def frame(opcode: int, payload: bytes = b"", *, masked: bool = True, length: bytes | None = None) -> bytes:
    """A frame as a client sends it."""
    if length is None:
        length = bytes([len(payload)]) if len(payload) < 126 else b"\x7e" + len(payload).to_bytes(2)
    if not masked:
        return bytes([opcode]) + length + payload
    hidden = bytes(byte ^ MASK[index % 4] for index, byte in enumerate(payload))
    return bytes([opcode, length[0] | 0x80]) + length[1:] + MASK + hidden


class Lines:
    """A handler whose stream is the given lines, and then lasts until the client disconnects or the stream is ended."""

    def __init__(self, *lines: bytes, is_binary: bool = False) -> None:
        self.is_binary = is_binary
        self.lines, self.left, self.ended = lines, asyncio.Event(), asyncio.Event()
        self.outlet: Outlet | None = None

    async def __call__(self, request: IncomingRequest) -> Answer:
        async def stream(outlet: Outlet) -> None:
            self.outlet = outlet
            for line in self.lines:
                await outlet.send(line)
            waits = [asyncio.create_task(request.disconnected()), asyncio.create_task(self.ended.wait())]
            _, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for one in pending:
                one.cancel()
            self.left.set()

        return WebSocketResponse(
            HTTPStatus.SWITCHING_PROTOCOLS, b"", stream, [(b"x-test", b"1")], is_binary=self.is_binary
        )


async def switched(server: Served, early: bytes = b"") -> RawClient:
    client = await server.connect()
    client.send(get("/", *UPGRADE).encode() + early)
    head = await client.until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert b"x-test: 1\r\n" in head
    for name in (b"connection: close", b"content-length", b"transfer-encoding"):
        assert name not in head
    return client


async def received(client: RawClient) -> tuple[int, bytes]:
    """The next frame of the server."""
    async with asyncio.timeout(PATIENCE):
        opcode, length = await client._reader.readexactly(2)
        if length == 126:
            length = int.from_bytes(await client._reader.readexactly(2))
        elif length == 127:
            length = int.from_bytes(await client._reader.readexactly(8))
        return opcode, await client._reader.readexactly(length)


@pytest.mark.parametrize("size", [0, 124, 125, 126, 65534, 65535, 300_000])
async def test_every_line_is_one_message(size: int) -> None:
    lines = [b"x" * size + b"\n", b'{"a":1}\n', b'{"b":2}\n']
    async with serving(Lines(lines[0], lines[1] + lines[2])) as server, await switched(server) as client:
        assert [await received(client) for _ in range(3)] == [(TEXT, line) for line in lines]


async def test_binary_messages_lose_their_lengths() -> None:
    sent = [b"\x00\n\xff", b"", b"x" * 70_000]
    stream = b"".join(len(each).to_bytes(4) + each for each in sent)
    async with serving(Lines(stream, is_binary=True)) as server, await switched(server) as client:
        assert [await received(client) for _ in sent] == [(BINARY, each) for each in sent]


async def test_what_all_clients_get_is_made_into_messages_once() -> None:
    handler = Lines(b"first\n")
    async with serving(handler) as server, await switched(server) as client:
        await received(client)
        batch = Batch([(1, b"a\n"), (2, b"b\n")])
        assert handler.outlet is not None
        assert handler.outlet.offer(batch)
        assert [await received(client), await received(client)] == [(TEXT, b"a\n"), (TEXT, b"b\n")]
        assert batch.as_messages == text_messages(batch.data)
        assert batch.on_the_wire is None


@pytest.mark.parametrize("payload", [b"", b"hello", b"x" * 125])
async def test_a_ping_is_answered(payload: bytes) -> None:
    async with serving(Lines()) as server, await switched(server) as client:
        client.send(frame(PING, payload))
        assert await received(client) == (PONG, payload)


@pytest.mark.parametrize(
    "sent",
    [
        frame(TEXT, b"hello"),
        frame(BINARY, b"\xff" * MAX_MESSAGE),
        frame(0x01, b"be") + frame(PONG, b"between") + frame(0x00, b"gin") + frame(0x80, b"ning"),
        frame(PONG, b"unasked"),
    ],
)
async def test_messages_of_the_client_are_dropped(sent: bytes) -> None:
    async with serving(Lines()) as server, await switched(server) as client:
        client.send(sent + frame(PING, b"there?"))
        assert await received(client) == (PONG, b"there?")


async def test_frames_may_arrive_byte_by_byte() -> None:
    async with serving(Lines()) as server, await switched(server) as client:
        for byte in frame(TEXT, b"hello") + frame(PING, b"there?"):
            client.send(bytes([byte]))
            await client._writer.drain()
            await asyncio.sleep(0)
        assert await received(client) == (PONG, b"there?")


@pytest.mark.parametrize("early", [frame(PING, b"early"), frame(TEXT, b"x" * 4000) * 3 + frame(PING, b"early")])
async def test_frames_that_come_before_the_answer_are_read(early: bytes) -> None:
    async with serving(Lines()) as server, await switched(server, early) as client:
        assert await received(client) == (PONG, b"early")


async def test_a_client_that_closes_is_answered_and_ends_the_stream() -> None:
    handler = Lines()
    async with serving(handler) as server, await switched(server) as client:
        client.send(frame(CLOSE, b"\x03\xe8bye"))
        assert await received(client) == (CLOSE, b"\x03\xe8bye")
        assert await client.everything() == b""
        await within(handler.left)


async def test_a_client_that_leaves_ends_the_stream() -> None:
    handler = Lines()
    async with serving(handler) as server:
        client = await switched(server)
        client.abort()
        await within(handler.left)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(TEXT, b"hello", masked=False), 1002),
        (frame(0xC1, b"a reserved bit"), 1002),
        (frame(0x83, b"an unknown opcode"), 1002),
        (frame(0x80, b"continues nothing"), 1002),
        (frame(0x01, b"begun") + frame(TEXT, b"not continued"), 1002),
        (frame(0x09, b"a ping in parts"), 1002),
        (frame(PING, b"x" * 126), 1002),
        (frame(CLOSE, b"\x03"), 1002),
        (frame(CLOSE, b"\x00\x01"), 1002),
        (get("/").encode(), 1002),
        (frame(TEXT, b"x" * (MAX_MESSAGE + 1)), 1009),
        (frame(TEXT, length=b"\x7f" + (1 << 62).to_bytes(8)), 1009),
        (frame(0x01, b"x" * MAX_MESSAGE) + frame(0x80, b"x"), 1009),
    ],
)
async def test_what_breaks_the_rules_ends_the_stream(sent: bytes, code: int) -> None:
    handler = Lines()
    async with serving(handler) as server, await switched(server) as client:
        client.send(sent)
        opcode, payload = await received(client)
        assert (opcode, int.from_bytes(payload[:2])) == (CLOSE, code)
        assert await client.everything() == b""
        await within(handler.left)


@pytest.mark.parametrize("answers", [[frame(CLOSE, b"\x03\xe8")], []])
async def test_the_end_of_the_stream_closes_the_connection(answers: Sequence[bytes]) -> None:
    handler = Lines(b"last\n")
    async with serving(handler) as server, await switched(server) as client:
        await received(client)
        handler.ended.set()
        assert await received(client) == (CLOSE, b"\x03\xe8")
        for answer in answers:
            client.send(answer)
        assert await client.everything() == b""


@pytest.mark.parametrize(
    ("first", "tiny"),
    [(b"", frame(TEXT)), (b"", frame(PING)), (b"", frame(PONG)), (frame(0x01), frame(0x00))],
    ids=["messages", "pings", "pongs", "fragments"],
)
async def test_a_client_that_sends_too_many_frames_is_disconnected(first: bytes, tiny: bytes) -> None:
    handler = Lines()
    async with serving(handler) as server, await switched(server) as client:
        client.send(first + tiny * (MAX_FRAMES + 1))
        while (found := await received(client))[0] == PONG:
            pass
        assert found == (CLOSE, b"\x03\xf0too many frames")
        client.send(tiny * MAX_FRAMES)
        assert await client.everything() == b""
        await within(handler.left)


async def test_frames_are_allowed_again_in_time() -> None:
    async with serving(Lines()) as server, await switched(server) as client:
        client.send(frame(PING, b"a") * MAX_FRAMES)
        for _ in range(MAX_FRAMES):
            assert await received(client) == (PONG, b"a")
        for _ in range(3):
            await asyncio.sleep(1.5 / FRAMES_PER_SECOND)
            client.send(frame(PING, b"b"))
            assert await received(client) == (PONG, b"b")


async def test_pings_of_a_client_that_does_not_read_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "MAX_FRAMES", 1_000_000)
    handler = Lines(b"x" * 8_000_000 + b"\n")
    async with serving(handler) as server, await switched(server) as client:
        pings, limit = frame(PING, b"p" * 125) * 500, 200
        for _ in range(limit):
            client.send(pings)
            await asyncio.sleep(0)
        (connection,) = server.server._connections
        waiting = connection._transport._transport.get_write_buffer_size()
        assert waiting < 8_000_000 + 500_000  # all answers would be 12.7 MB
        client.abort()
        await within(handler.left)


async def test_a_request_for_a_websocket_may_be_answered_without_one() -> None:
    async def refuse(request: IncomingRequest) -> Answer:
        await asyncio.sleep(0)
        return text_response(request.path, status=400)

    async with serving(refuse) as server, await server.connect() as client:
        client.send(get("/a", *UPGRADE).encode() + frame(PING, b"early"))
        head, body = await client.answer()
        assert (head[:12], body) == (b"HTTP/1.1 400", b"/a")
        assert b"connection: close" in head
        assert await client.everything() == b""


async def test_a_websocket_waits_for_the_answers_before_it() -> None:
    gate, handler = Gate(), Lines(b"line\n")

    async def both(request: IncomingRequest) -> Answer:
        return await (handler(request) if request.asks_for_websocket else gate(request))

    async with serving(both) as server, await server.connect() as client:
        client.send(get("/first").encode() + get("/second", *UPGRADE).encode() + frame(PING, b"early"))
        await gate.has_seen(1)
        gate.open.set()
        assert (await client.answer())[1] == b"/first"
        assert b" 101 " in await client.until(b"\r\n\r\n")
        assert sorted([await received(client), await received(client)]) == [(TEXT, b"line\n"), (PONG, b"early")]
