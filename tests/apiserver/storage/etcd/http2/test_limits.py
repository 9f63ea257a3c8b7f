"""Flow control both ways, limits that a peer sets, and connections that end: what is certain of each request then."""

import asyncio
import gc
import ssl

import pytest

from clusterregistry.apiserver.storage.etcd.http2 import channel as channels
from clusterregistry.apiserver.storage.etcd.http2 import connection, frames
from clusterregistry.apiserver.storage.etcd.http2.channel import Channel
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError, StatusCode, framed
from tests.apiserver.storage.etcd.http2.peers import HEAD, PATH, Peer, call, data, serving
from tools.ports import free_ports

BODY = bytes(range(256)) * 800  # more than a window and many frames


async def failure(channel: Channel, message: bytes = b"question") -> RpcError:
    with pytest.raises(RpcError) as caught:
        await call(channel, message)
    return caught.value


async def test_no_more_is_sent_than_the_windows_allow() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet({frames.INITIAL_WINDOW_SIZE: 0})
        stream = (await peer.frame(frames.HEADERS)).stream
        body = b""
        for increment in (1, 4, 20_000):
            peer.send(frames.window_update(stream, increment))
            wanted = len(body) + increment
            while len(body) < wanted:
                frame = await peer.frame(frames.DATA)
                assert len(frame.content) <= frames.SMALLEST_MAX_FRAME
                body += frame.content
            assert len(body) == wanted
        peer.send(frames.window_update(stream, 1 << 20))
        while len(body) < frames.DEFAULT_WINDOW:
            body += (await peer.frame(frames.DATA)).content
        # The window of the stream is wide open by now, that of the connection is used up.
        assert len(body) == frames.DEFAULT_WINDOW
        peer.send(frames.window_update(0, 1 << 20))
        last = False
        while not last:
            frame = await peer.frame(frames.DATA)
            body, last = body + frame.content, bool(frame.flags & frames.END_STREAM)
        assert body == framed(BODY)
        peer.answer(stream, b"got it")

    async with serving(script) as channel:
        assert await call(channel, BODY) == b"got it"


async def test_settings_may_change_while_a_body_is_sent() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet({frames.INITIAL_WINDOW_SIZE: 10})
        stream = (await peer.frame(frames.HEADERS)).stream
        body = (await peer.frame(frames.DATA)).content
        assert len(body) == 10
        peer.send(frames.window_update(0, 1 << 20))
        # Below zero for what was sent: nothing may come until it is above.
        peer.send(frames.settings({frames.INITIAL_WINDOW_SIZE: 4, frames.MAX_FRAME_SIZE: 20_000}))
        peer.send(frames.settings({frames.INITIAL_WINDOW_SIZE: 13}))
        body += (await peer.frame(frames.DATA)).content
        assert len(body) == 13
        peer.send(frames.settings({frames.INITIAL_WINDOW_SIZE: 1 << 20}))
        sizes = []
        while len(body) < len(BODY) + 5:
            content = (await peer.frame(frames.DATA)).content
            sizes.append(len(content))
            body += content
        assert max(sizes) == 20_000
        assert body == framed(BODY)
        peer.answer(stream, b"got it")

    async with serving(script) as channel:
        assert await call(channel, BODY) == b"got it"


async def test_settings_are_acknowledged_before_they_are_made_use_of() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet({frames.INITIAL_WINDOW_SIZE: 10})
        stream = (await peer.frame(frames.DATA)).stream
        peer.send(frames.settings({frames.INITIAL_WINDOW_SIZE: 1000, frames.MAX_FRAME_SIZE: 20_000}))
        # Until then the old ones hold: a server may take what goes beyond them for a breach.
        assert (await peer.frame())[:2] == (frames.SETTINGS, frames.ACK)
        assert len((await peer.frame()).content) == 990
        peer.answer(stream, b"got it")

    async with serving(script) as channel:
        assert await call(channel, BODY) == b"got it"


async def test_a_large_body_keeps_no_small_one_from_being_sent() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet({frames.INITIAL_WINDOW_SIZE: 100})
        first = await peer.frame(frames.DATA)
        assert not first.flags & frames.END_STREAM
        small = await peer.frame(frames.DATA)
        assert small.flags & frames.END_STREAM
        peer.answer(small.stream, b"small")
        peer.send(frames.reset(first.stream, frames.CANCEL))

    async with serving(script) as channel:
        large = asyncio.ensure_future(failure(channel, BODY))
        await asyncio.sleep(0)
        assert await call(channel, b"") == b"small"
        # The server cannot have begun with a request of which it has a part.
        assert not (await large).reached


async def test_an_answer_before_the_end_of_a_body_ends_the_body() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        stream = (await peer.frame(frames.HEADERS)).stream
        peer.send(peer.trailers(stream, [*HEAD, ("grpc-status", "8"), ("grpc-message", "message larger than max")]))
        assert (await peer.frame(frames.RST_STREAM)).stream == stream
        peer.send(frames.window_update(0, 1 << 20))
        peer.answer((await peer.request()).stream, b"next")

    async with serving(script) as channel:
        assert (await failure(channel, BODY)).code is StatusCode.RESOURCE_EXHAUSTED
        assert await call(channel) == b"next"


async def test_a_server_is_told_what_was_read_though_seldom() -> None:
    size, answers = frames.SMALLEST_MAX_FRAME, 3
    frames_a_message = connection.STREAM_WINDOW // 2 // size + 1

    async def script(peer: Peer) -> None:
        await peer.greet()
        for _ in range(answers):
            request = await peer.request()
            message = framed(bytes(frames_a_message * size - 5))
            peer.send(peer.headers(request.stream, HEAD))
            for at in range(0, len(message), size):
                peer.send(data(request.stream, message[at : at + size]))
            update = await peer.frame(frames.WINDOW_UPDATE)
            while update.stream == 0:  # the first one opens the connection
                update = await peer.frame(frames.WINDOW_UPDATE)
            assert update.stream == request.stream
            assert frames.number(update.content) >= connection.STREAM_WINDOW // 2
            peer.send(peer.trailers(request.stream))

    async with serving(script) as channel:
        for _ in range(answers):
            assert len(await call(channel)) == frames_a_message * size - 5


async def test_a_stream_that_nobody_reads_makes_the_server_wait() -> None:
    read = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.greet()
        stream = (await peer.frame(frames.DATA)).stream
        peer.send(peer.headers(stream, HEAD))
        content = framed(bytes(frames.SMALLEST_MAX_FRAME - 5))
        for _ in range(connection.STREAM_WINDOW // len(content)):
            peer.send(data(stream, content))
        peer.send(frames.ping(b"8 bytes!"))
        while (frame := await peer.frame()).kind != frames.PING:
            assert (frame.kind, frame.stream) != (frames.WINDOW_UPDATE, stream)
        read.set()
        while (frame := await peer.frame(frames.WINDOW_UPDATE)).stream != stream:
            pass
        assert frames.number(frame.content) == connection.STREAM_WINDOW
        peer.send(peer.trailers(stream))

    async with serving(script) as channel:
        stream = await channel.stream(PATH, b"", metadata=())
        await read.wait()
        with pytest.raises(RpcError):  # noqa: PT012 - it reads to the end
            while True:
                assert len(await stream.read()) == frames.SMALLEST_MAX_FRAME - 5


async def test_a_server_that_does_not_wait_is_left() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        stream = (await peer.frame(frames.DATA)).stream
        peer.send(peer.headers(stream, HEAD))
        content = framed(bytes(frames.SMALLEST_MAX_FRAME - 5))
        for _ in range(connection.STREAM_WINDOW // len(content) + 1):
            peer.send(data(stream, content))
        assert "more than a window" in frames.read_goaway((await peer.frame(frames.GOAWAY)).content)[2]

    async with serving(script) as channel:
        stream = await channel.stream(PATH, b"", metadata=())
        error = await stream.wait_for_end()
        assert "more than a window" in str(error)


async def test_more_calls_than_a_server_takes_wait_for_their_turn() -> None:
    most = 3

    async def script(peer: Peer) -> None:
        await peer.greet({frames.MAX_CONCURRENT_STREAMS: most})
        for _ in range(10):
            requests = [await peer.request() for _ in range(most)]
            for request in reversed(requests):
                peer.answer(request.stream, request.message)

    async with serving(script) as channel:
        calls = [asyncio.ensure_future(call(channel, b"%d" % n)) for n in range(most * 10 + 1)]
        await asyncio.sleep(0)
        calls.pop().cancel()  # the last one has not had its turn
        assert await asyncio.gather(*calls) == [b"%d" % n for n in range(most * 10)]


async def test_a_call_that_never_has_its_turn_was_not_begun() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet({frames.MAX_CONCURRENT_STREAMS: 0})

    async with serving(script) as channel:
        with pytest.raises(RpcError) as caught:
            await call(channel, seconds=0.2)
    assert (caught.value.code, caught.value.reached) == (StatusCode.DEADLINE_EXCEEDED, False)


async def test_calls_that_run_out_of_time_together_do_not_begin_one_another() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet({frames.MAX_CONCURRENT_STREAMS: 1})
        first = await peer.request()
        assert (await peer.frame()) == (frames.RST_STREAM, 0, first.stream, frames.CANCEL.to_bytes(4, "big"))
        peer.answer((await peer.request()).stream, b"next")

    async with serving(script) as channel:
        await channel._connected(30)
        outcomes = await asyncio.gather(*(call(channel, seconds=0.15) for _ in range(3)), return_exceptions=True)
        assert [isinstance(error, RpcError) and error.reached for error in outcomes] == [True, False, False]
        assert await call(channel) == b"next"


async def test_calls_that_are_given_up_together_do_not_begin_one_another() -> None:
    asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.greet({frames.MAX_CONCURRENT_STREAMS: 1})
        await peer.request()
        asked.set()
        request = await peer.request()
        peer.answer(request.stream, request.message)

    async with serving(script) as channel:
        calls = [asyncio.ensure_future(call(channel, b"given up")) for _ in range(10)]
        await asked.wait()
        wanted = asyncio.ensure_future(call(channel, b"wanted"))
        await asyncio.sleep(0)
        for each in calls:
            each.cancel()
        assert await wanted == b"wanted"
        assert all(each.cancelled() for each in calls)


@pytest.mark.parametrize(("code", "reached"), [(frames.REFUSED_STREAM, False), (frames.INTERNAL_ERROR, True)])
async def test_a_request_that_is_reset_was_begun_unless_it_was_refused(code: int, *, reached: bool) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        peer.send(frames.reset((await peer.request()).stream, code))

    async with serving(script) as channel:
        error = await failure(channel)
    assert (error.code, error.reached) == (StatusCode.UNAVAILABLE, reached)
    assert frames.error_name(code) in error.details


async def test_a_server_that_goes_away_answers_what_it_took_and_the_rest_was_not_begun() -> None:
    async def leaving(peer: Peer) -> None:
        await peer.greet()
        first, second, third = [await peer.request() for _ in range(3)]
        content = (second.stream).to_bytes(4, "big") + frames.ENHANCE_YOUR_CALM.to_bytes(4, "big") + b"too many pings"
        peer.send(frames.head(len(content), kind=frames.GOAWAY) + content)
        peer.answer(first.stream, b"first")
        peer.send(frames.reset(third.stream, frames.CANCEL))  # nobody listens any longer
        peer.answer(second.stream, b"second")
        with pytest.raises(asyncio.IncompleteReadError):  # noqa: PT012 - until the client ends the connection by itself
            while True:
                await peer.frame()

    async def staying(peer: Peer) -> None:
        await peer.greet()
        while True:
            peer.answer((await peer.request()).stream, b"from the next connection")

    async with serving(leaving, staying) as channel:
        first, second = (asyncio.ensure_future(call(channel)) for _ in range(2))
        await asyncio.sleep(0)
        error = await failure(channel)
        assert "ENHANCE_YOUR_CALM: too many pings" in error.details
        assert not error.reached
        assert await call(channel) == b"from the next connection"
        assert [await first, await second] == [b"first", b"second"]


async def test_a_call_that_waits_for_its_turn_when_the_server_goes_away_was_not_begun() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet({frames.MAX_CONCURRENT_STREAMS: 1})
        request = await peer.request()
        content = request.stream.to_bytes(4, "big") + bytes(4)
        peer.send(frames.head(len(content), kind=frames.GOAWAY) + content)
        peer.answer(request.stream, b"first")

    async with serving(script) as channel:
        first = asyncio.ensure_future(call(channel))
        await asyncio.sleep(0)
        assert not (await failure(channel)).reached
        assert await first == b"first"


async def test_what_is_under_way_when_a_connection_is_lost_may_have_been_done() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet({frames.MAX_CONCURRENT_STREAMS: 1})
        await peer.request()
        peer.end()

    async with serving(script) as channel:
        under_way, waiting = await asyncio.gather(failure(channel), failure(channel))
    assert under_way.reached
    assert not waiting.reached
    assert "closed the connection" in under_way.details


async def test_a_connection_that_is_lost_in_the_turn_of_a_call_disturbs_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        while True:
            peer.answer((await peer.request()).stream, b"answer")

    async with serving(script) as channel:
        await call(channel)
        assert channel._connection is not None
        lost, failing = channel._connection, asyncio.ensure_future(failure(channel))
        await asyncio.sleep(0)  # its frames wait for the end of the turn
        assert lost._outlet._pending
        lost._outlet._transport.abort()
        lost.connection_lost(None)
        assert "closed the connection" in (await failing).details
        assert await call(channel) == b"answer"
    assert caplog.records == []


async def test_who_waits_for_a_connection_when_its_channel_is_closed_is_told() -> None:
    async def script(peer: Peer) -> None:
        await peer.frame()

    async with serving(script) as channel:
        failing = asyncio.ensure_future(failure(channel))
        await asyncio.sleep(0)
        await channel.close()
        error = await failing
        assert "closed by us" in error.details
        assert not error.reached


@pytest.mark.parametrize("turns", range(1, 9))
async def test_a_channel_can_be_closed_in_any_turn_of_connecting(turns: int, caplog: pytest.LogCaptureFixture) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()

    async with serving(script) as channel:
        failing = asyncio.ensure_future(failure(channel))
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            await channel.close()
            await failing
        assert not channel._running
    gc.collect()
    assert caplog.records == []


async def test_when_its_numbers_are_used_up_a_connection_is_replaced() -> None:
    connections = 0

    async def script(peer: Peer) -> None:
        nonlocal connections
        connections += 1
        await peer.greet()
        while True:
            request = await peer.request()
            peer.answer(request.stream, request.message)

    async with serving(script) as channel:
        await call(channel)
        assert channel._connection is not None
        channel._connection._next_id = frames.LAST_STREAM - 2
        for number in range(4):
            assert await call(channel, b"%d" % number) == b"%d" % number
    assert connections == 2


NONSENSE: dict[str, bytes] = {
    "a frame that is too large": frames.head(frames.SMALLEST_MAX_FRAME + 1, kind=frames.DATA, stream=1),
    "headers that cannot be read": frames.header_block(b"\xff\xff\xff\xff\xff\xff\xff", stream=1, largest=100),
    "headers that are too large": frames.header_block(bytes(70_000), stream=1, largest=16_384),
    "headers that break off": frames.head(1, kind=frames.HEADERS, stream=1) + b"\x88" + frames.ping(bytes(8)),
    "does not belong anywhere": frames.head(0, kind=frames.CONTINUATION, stream=1),
    "stream 5, which there is not": data(5, b""),
    "stream 2, which there is not": data(2, b""),
    "stream 0, which there is not": data(0, b""),
    "a push": frames.head(4, kind=frames.PUSH_PROMISE, stream=1) + bytes(4),
    "more padding than there is": data(1, b"\x09x", flags=frames.PADDED),
    "opened by nothing": frames.window_update(0, 0),
    "a window that is too large": frames.window_update(0, frames.LARGEST_WINDOW),
    "of the wrong size": frames.head(3, kind=frames.RST_STREAM, stream=1) + bytes(3),
    "settings of the wrong size": frames.head(5, kind=frames.SETTINGS) + bytes(5),
    "settings on a stream": frames.head(0, kind=frames.SETTINGS, stream=1),
    "a size of frames": frames.settings({frames.MAX_FRAME_SIZE: 1}),
    "questions without an end": frames.ping(bytes(8)) * 2000,
}


@pytest.mark.parametrize("complaint", NONSENSE)
async def test_what_http2_does_not_allow_ends_the_connection_with_a_reason(complaint: str) -> None:
    goaway: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.request()
        peer.send(NONSENSE[complaint])
        goaway.set_result(frames.read_goaway((await peer.frame(frames.GOAWAY)).content)[2])

    async with serving(script) as channel:
        error = await failure(channel)
        assert complaint in error.details
        assert error.reached
        assert complaint in await goaway


@pytest.mark.parametrize("question", [frames.ping(bytes(8)), frames.settings({})], ids=["ping", "settings"])
async def test_a_server_that_asks_and_does_not_read_the_answers_is_left(
    question: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_MOST_UNREAD", 1000)
    monkeypatch.setattr(connection, "_PONG_SECONDS", 0.0)

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.request()
        peer._writer.transport.pause_reading()  # type: ignore[attr-defined]
        while not peer._writer.is_closing():
            peer.send(question * 500)
            await peer._writer.drain()
            await asyncio.sleep(0)

    async with serving(script) as channel:
        assert "questions without an end" in (await failure(channel)).details


GREETINGS: dict[str, tuple[bytes, str]] = {
    "HTTP/1.1": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1.1"),
    "TLS": (b"\x15\x03\x01\x00\x02\x02\x46", "speaks TLS"),
    "something else": (b"220 mail.example.com ESMTP\r\n", "does not speak HTTP/2"),
    "another frame": (frames.ping(bytes(8)), "does not speak HTTP/2"),
    "nothing": (b"", "closed the connection"),
}


@pytest.mark.parametrize(("greeting", "complaint"), GREETINGS.values(), ids=GREETINGS)
async def test_who_does_not_speak_http2_is_told_of_and_has_begun_nothing(greeting: bytes, complaint: str) -> None:
    async def script(peer: Peer) -> None:
        peer.send(greeting)
        peer.end()

    async with serving(script) as channel:
        error = await failure(channel)
    assert complaint in error.details
    assert (error.code, error.reached) == (StatusCode.UNAVAILABLE, False)


async def test_a_handshake_that_breaks_off_has_a_reason_on_every_loop() -> None:
    async def script(peer: Peer) -> None:
        await peer._reader.read(1)
        peer.end()

    async with serving(script) as plain:
        channel = Channel(plain._endpoint, ssl.create_default_context())
        error = await failure(channel)
        await channel.close()
    before, _, reason = error.details.partition(channels.HANDSHAKE_FAILED + ": ")
    assert before
    assert reason


async def test_a_server_that_never_greets_is_not_waited_for_longer_than_a_call_may_take() -> None:
    async def script(peer: Peer) -> None:
        await peer.frame()

    async with serving(script) as channel:
        with pytest.raises(RpcError) as caught:
            await call(channel, seconds=0.1)
    assert (caught.value.code, caught.value.reached) == (StatusCode.DEADLINE_EXCEEDED, False)


async def test_nor_longer_than_a_connection_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(peer: Peer) -> None:
        await peer.frame()

    monkeypatch.setattr(channels, "CONNECT_SECONDS", 0.1)
    async with serving(script) as channel:
        error = await failure(channel)
    assert (error.code, error.reached) == (StatusCode.DEADLINE_EXCEEDED, False)


async def test_where_nobody_listens_one_attempt_is_made_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "_FIRST_PAUSE", 60.0)
    channel, attempts = Channel(f"127.0.0.1:{free_ports(1)[0]}", None), 0
    opened = channel._open

    async def counted(each: connection.Connection) -> None:
        nonlocal attempts
        attempts += 1
        await opened(each)

    monkeypatch.setattr(channel, "_open", counted)
    channel._pause = 60.0
    errors = [*await asyncio.gather(*(failure(channel) for _ in range(20))), await failure(channel)]
    assert attempts == 1
    assert {(error.details, error.reached) for error in errors} == {(errors[0].details, False)}
    assert "Connection refused" in errors[0].details
    await channel.close()


@pytest.mark.parametrize("host", ["etcd..example", "x" * 64 + ".example"], ids=["empty", "long"])
async def test_a_name_that_cannot_be_one_is_told_of_and_tried_as_seldom_as_others(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    channel = Channel(f"{host}:2379", None)
    channel._pause = 60.0
    for _ in range(2):
        error = await failure(channel)
        assert f"failed to connect to {host}:2379: its name cannot be resolved" in error.details
        assert (error.code, error.reached) == (StatusCode.UNAVAILABLE, False)
    assert channel._not_before > asyncio.get_running_loop().time()
    await channel.close()
    gc.collect()
    assert caplog.records == []


async def test_closing_ends_what_is_under_way() -> None:
    asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.request()
        asked.set()

    async with serving(script) as channel:
        failing = asyncio.ensure_future(failure(channel))
        await asked.wait()
        await channel.close()
        assert "closed by us" in (await failing).details
