"""Calls over our HTTP/2: what is sent, and what is made of answers, whichever way they are cut."""

import asyncio

import pytest

from clusterregistry.apiserver.storage.etcd.http2 import connection, frames, streams
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError, StatusCode, framed
from tests.apiserver.storage.etcd.http2.peers import HEAD, PATH, Peer, call, data, serving


async def echo(peer: Peer) -> None:
    await peer.greet()
    while True:
        request = await peer.request()
        peer.answer(request.stream, b"answer to " + request.message)


async def failure(*scripts: object) -> RpcError:
    """How a call fails."""
    async with serving(*scripts) as channel:  # type: ignore[arg-type]
        with pytest.raises(RpcError) as caught:
            await call(channel)
    return caught.value


async def test_a_call_is_answered() -> None:
    async with serving(echo) as channel:
        assert await call(channel) == b"answer to question"
        assert await call(channel, b"") == b"answer to "


async def test_the_headers_of_a_request_are_those_of_grpc() -> None:
    found: list[dict[str, str]] = []

    async def script(peer: Peer) -> None:
        await peer.greet()
        request = await peer.request()
        found.append(request.headers)
        peer.answer(request.stream, b"")

    async with serving(script) as channel:
        await call(channel, seconds=1.5)
    (headers,) = found
    assert headers.pop(":authority").startswith("127.0.0.1:")
    assert headers == {
        ":method": "POST",
        ":scheme": "http",
        ":path": PATH,
        "content-type": "application/grpc",
        "user-agent": "apiserver",
        "te": "trailers",
        "grpc-timeout": "1500m",
        "key": "value",
    }


async def test_headers_of_any_length_arrive() -> None:
    found: list[str] = []

    async def script(peer: Peer) -> None:
        await peer.greet()
        first = await peer.frame(frames.HEADERS)
        block, flags = first.content, first.flags
        while not flags & frames.END_HEADERS:
            frame = await peer.frame()
            assert (frame.kind, frame.stream) == (frames.CONTINUATION, first.stream)
            block, flags = block + frame.content, frame.flags
        found.append(peer.fields(block)["token"])
        peer.answer(first.stream, b"")

    async with serving(script) as channel:
        for length in (1, 126, 127, 128, 16_000, 40_000):
            await channel.call(PATH, b"", metadata=(("token", "x" * length),), seconds=30)
            assert len(found.pop()) == length
            await channel.close()


async def test_a_server_may_take_less_of_a_table_of_headers_at_any_time() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        for size in (4096, 100, 0):
            # A strict reader wants to be told that a table which has become too large is not in use.
            peer._decoder.max_allowed_table_size = size
            peer.answer((await peer.request()).stream, b"%d" % size)

    async with serving(script) as channel:
        assert [await call(channel) for _ in range(3)] == [b"4096", b"100", b"0"]


async def test_calls_of_one_turn_share_a_write_and_each_gets_its_own_answer() -> None:
    async with serving(echo) as channel:
        await call(channel)
        assert channel._connection is not None
        outlet, writes = channel._connection._outlet, list[int]()

        class Counting:
            def write(self, data: bytes) -> None:
                writes.append(len(data))
                transport.write(data)

            def __getattr__(self, name: str) -> object:
                return getattr(transport, name)

        transport, outlet._transport = outlet._transport, Counting()  # type: ignore[assignment]
        answers = await asyncio.gather(*(call(channel, b"%d" % n) for n in range(50)))
        outlet._transport = transport
    assert answers == [b"answer to %d" % n for n in range(50)]
    assert len(writes) == 1


async def test_an_answer_may_come_a_byte_at_a_time() -> None:
    async def script(peer: Peer) -> None:
        await peer._reader.readexactly(len(frames.PREFACE))
        for byte in frames.settings({frames.MAX_CONCURRENT_STREAMS: 7}):
            peer.send(bytes([byte]))
            await asyncio.sleep(0)
        request = await peer.request()
        whole = peer.headers(request.stream, HEAD) + data(request.stream, framed(b"slowly")) + peer.trailers(1)
        for byte in whole:
            peer.send(bytes([byte]))
            await asyncio.sleep(0)

    async with serving(script) as channel:
        assert await call(channel) == b"slowly"


async def test_a_message_may_be_cut_into_frames_anywhere() -> None:
    message = framed(b"0123456789" * 10)

    async def script(peer: Peer) -> None:
        await peer.greet()
        for size in (1, 2, 4, 5, 6, 50, 104):
            stream = (await peer.request()).stream
            parts = [data(stream, message[at : at + size]) for at in range(0, len(message), size)]
            peer.send(peer.headers(stream, HEAD) + b"".join(parts) + data(stream, b"") + peer.trailers(stream))

    async with serving(script) as channel:
        for _ in range(7):
            assert await call(channel) == message[5:]


async def test_padding_priorities_continued_headers_and_unknown_frames_are_understood() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        stream = (await peer.request()).stream
        whole = peer.block(HEAD)
        block, rest = b"\x03" + bytes(5) + whole[:4], whole[4:]
        flags = frames.PADDED | frames.WITH_PRIORITY
        peer.send(frames.head(len(block) + 3, kind=frames.HEADERS, flags=flags, stream=stream) + block + bytes(3))
        peer.send(frames.head(2, kind=frames.CONTINUATION, stream=stream) + rest[:2])
        last = frames.head(len(rest) - 2, kind=frames.CONTINUATION, flags=frames.END_HEADERS, stream=stream)
        peer.send(last + rest[2:])
        peer.send(frames.head(3, kind=77, stream=stream) + b"new")
        peer.send(frames.head(5, kind=frames.PRIORITY, stream=stream) + bytes(5))
        peer.send(data(stream, b"\x09" + framed(b"padded") + bytes(9), flags=frames.PADDED))
        peer.send(peer.trailers(stream))

    async with serving(script) as channel:
        assert await call(channel) == b"padded"


async def test_headers_on_the_way_are_no_answer() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        stream = (await peer.request()).stream
        peer.send(peer.headers(stream, [(":status", "103")]))
        peer.answer(stream, b"late")

    async with serving(script) as channel:
        assert await call(channel) == b"late"


@pytest.mark.parametrize("only", [True, False], ids=["at once", "after headers"])
async def test_a_status_is_an_error_with_its_message(*, only: bool) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        stream = (await peer.request()).stream
        status = [("grpc-status", "9"), ("grpc-message", "no%20such%20thing: 100%25 %E2%82%AC %zz")]
        if not only:
            peer.send(peer.headers(stream, HEAD))
        peer.send(peer.trailers(stream, [*HEAD, *status] if only else status))

    error = await failure(script)
    assert (error.code, error.details) == (StatusCode.FAILED_PRECONDITION, "no such thing: 100% € %zz")
    assert error.reached


@pytest.mark.parametrize(
    ("status", "code"), [("404", "UNIMPLEMENTED"), ("503", "UNAVAILABLE"), ("200", "UNKNOWN"), ("nonsense", "UNKNOWN")]
)
async def test_what_answers_in_place_of_etcd_is_no_answer(status: str, code: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        stream = (await peer.request()).stream
        peer.send(peer.headers(stream, [(":status", status), ("content-type", "text/html")]))
        peer.send(data(stream, b"<html>", flags=frames.END_STREAM))

    error = await failure(script)
    assert error.code.name == code
    assert "no gRPC" in error.details


@pytest.mark.parametrize(
    ("content", "trailers", "complaint"),
    [
        (framed(b"x"), [("other", "1")], "without a status"),
        (framed(b"x"), [("grpc-status", "99")], ""),
        (b"", [("grpc-status", "0")], "nothing in it"),
        (b"\x01" + framed(b"x")[1:], [("grpc-status", "0")], "compressed"),
        (b"\x00\xff\xff\xff\xff", [("grpc-status", "0")], "is not read"),
    ],
    ids=["no status", "unknown status", "no message", "compressed", "endless"],
)
async def test_a_strange_answer_is_an_error(content: bytes, trailers: list[tuple[str, str]], complaint: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        stream = (await peer.request()).stream
        peer.send(peer.headers(stream, HEAD) + data(stream, content) + peer.trailers(stream, trailers))

    error = await failure(script)
    assert complaint in error.details
    assert error.reached


async def test_an_answer_without_trailers_is_an_error() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        stream = (await peer.request()).stream
        peer.send(peer.headers(stream, HEAD) + data(stream, framed(b"x"), flags=frames.END_STREAM))

    assert "breaks off" in (await failure(script)).details


async def test_what_takes_too_long_is_given_up_and_the_server_hears_of_it() -> None:
    heard: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def script(peer: Peer) -> None:
        await peer.greet()
        peer.answer((await peer.request()).stream, b"connected")
        request = await peer.request()
        frame = await peer.frame(frames.RST_STREAM)
        assert frame.stream == request.stream
        heard.set_result(frames.number(frame.content))
        peer.answer(request.stream, b"too late")
        peer.answer((await peer.request()).stream, b"in time")

    async with serving(script) as channel:
        await call(channel)
        with pytest.raises(RpcError) as caught:
            await call(channel, seconds=0.2)
        assert (caught.value.code, caught.value.reached) == (StatusCode.DEADLINE_EXCEEDED, True)
        assert await heard == frames.CANCEL
        assert await call(channel) == b"in time"


async def test_who_gives_up_disturbs_nobody_and_the_server_hears_of_it() -> None:
    asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def script(peer: Peer) -> None:
        await peer.greet()
        first, second = await peer.request(), await peer.request()
        asked.set_result(None)
        frame = await peer.frame(frames.RST_STREAM)
        assert (frame.stream, frames.number(frame.content)) == (first.stream, frames.CANCEL)
        peer.answer(first.stream, b"nobody wants it")
        peer.answer(second.stream, b"wanted")

    async with serving(script) as channel:
        given_up, other = (asyncio.ensure_future(call(channel)) for _ in range(2))
        await asked
        given_up.cancel()
        assert await other == b"wanted"
        assert given_up.cancelled()


async def test_a_silent_server_is_asked_whether_it_is_there_and_left_if_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "KEEPALIVE_SECONDS", 0.0)
    monkeypatch.setattr(connection, "KEEPALIVE_PATIENCE", 0.3)
    asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.request()
        assert not (await peer.frame(frames.PING)).flags
        asked.set()

    async with serving(script) as channel:
        with pytest.raises(RpcError, match="whether it is there") as caught:
            await call(channel)
        await asked.wait()
    assert caught.value.reached


async def test_a_server_that_answers_to_that_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "KEEPALIVE_SECONDS", 0.0)

    async def script(peer: Peer) -> None:
        await peer.greet()
        request = await peer.request()
        for _ in range(3):
            ping = await peer.frame(frames.PING)
            peer.send(frames.ping(ping.content, ack=True))
        peer.answer(request.stream, b"still here")

    async with serving(script) as channel:
        assert await call(channel) == b"still here"


async def test_a_server_that_asks_is_answered() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        request = await peer.request()
        peer.send(frames.ping(b"8 bytes!") + frames.settings({}))
        acknowledged = [await peer.frame(), await peer.frame()]
        while {frame.kind for frame in acknowledged} != {frames.SETTINGS, frames.PING}:
            acknowledged.append(await peer.frame())
        assert all(frame.flags == frames.ACK for frame in acknowledged)
        assert [frame.content for frame in acknowledged if frame.kind == frames.PING] == [b"8 bytes!"]
        peer.answer(request.stream, b"good")

    async with serving(script) as channel:
        assert await call(channel) == b"good"


async def test_messages_go_both_ways_on_a_stream_until_one_side_ends_it() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        first = await peer.frame(frames.DATA)
        assert first.content == framed(b"first")
        peer.send(peer.headers(first.stream, HEAD) + data(first.stream, framed(b"1") + framed(b"2") + framed(b"3")))
        assert (await peer.frame(frames.DATA)).content == framed(b"second")
        peer.send(data(first.stream, framed(b"4")) + peer.trailers(first.stream, [("grpc-status", "1")]))

    async with serving(script) as channel:
        stream = await channel.stream(PATH, b"first", metadata=())
        assert [await stream.read() for _ in range(3)] == [b"1", b"2", b"3"]
        stream.write(b"second")
        assert await stream.read() == b"4"
        with pytest.raises(RpcError) as caught:
            await stream.read()
        assert caught.value.code is StatusCode.CANCELLED
        stream.write(b"third")  # goes nowhere
        stream.cancel()


async def test_a_sink_gets_messages_as_they_come_and_the_end_is_told() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        first = await peer.frame(frames.DATA)
        peer.send(peer.headers(first.stream, HEAD) + data(first.stream, framed(b"1") + framed(b"2")))
        peer.send(peer.trailers(first.stream))

    async with serving(script) as channel:
        stream, received = await channel.stream(PATH, b"", metadata=()), list[bytes]()
        stream.sink = received.append
        error = await stream.wait_for_end()
    assert received == [b"1", b"2"]
    assert isinstance(error, RpcError)


@pytest.mark.parametrize("flags", [0, frames.END_STREAM], ids=["that goes on", "at its end"])
async def test_a_stream_that_its_sink_cancels_hears_nothing_more(flags: int) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        stream = (await peer.frame(frames.DATA)).stream
        # What comes with the message that is enough: another one, and one that is wrong.
        content = framed(b"enough") + framed(b"too much") + b"\x01" + bytes(4)
        peer.send(peer.headers(stream, HEAD) + data(stream, content, flags=flags))
        assert (await peer.frame(frames.RST_STREAM)).stream == stream
        peer.answer((await peer.request()).stream, b"on the same connection")

    async with serving(script) as channel:
        stream, received = await channel.stream(PATH, b"", metadata=()), list[bytes]()

        def take(message: bytes) -> None:
            received.append(message)
            stream.cancel(ValueError("enough"))

        stream.sink = take
        assert str(await stream.wait_for_end()) == "enough"
        assert await call(channel) == b"on the same connection"
    assert received == [b"enough"]


async def test_a_stream_that_is_cancelled_is_reset_once() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        first = await peer.frame(frames.DATA)
        frame = await peer.frame(frames.RST_STREAM)
        assert (frame.stream, frames.number(frame.content)) == (first.stream, frames.CANCEL)
        peer.answer((await peer.request()).stream, b"next")

    async with serving(script) as channel:
        stream = await channel.stream(PATH, b"", metadata=())
        stream.cancel()
        stream.cancel()
        assert await call(channel) == b"next"
        with pytest.raises(RpcError):
            await stream.read()


def test_the_largest_message_is_larger_than_what_etcd_is_asked_for() -> None:
    assert streams.LARGEST_MESSAGE > 2000 * 100_000
