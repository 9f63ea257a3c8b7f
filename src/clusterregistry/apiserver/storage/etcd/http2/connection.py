"""One connection: frames in, frames out, and the exchanges that go on at the same time.

It is used by one loop. Whatever the peer does wrong ends the connection with a reason, and every exchange on it hears
of that; which of them the peer can have got is told by each exchange's error.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable

from clusterregistry.apiserver.storage.etcd.http2 import frames
from clusterregistry.apiserver.storage.etcd.http2.flow import FrameWriter
from clusterregistry.apiserver.storage.etcd.http2.frames import FrameReader, HeadReader, ProtocolError
from clusterregistry.apiserver.storage.etcd.http2.handshake import is_greeting, strange_greeting
from clusterregistry.apiserver.storage.etcd.http2.streams import Exchange, RpcError, StatusCode, Stream, unavailable

KEEPALIVE_SECONDS = 10.0
"""How long a peer may be silent before it is asked whether it is there. etcd ends connections that ask every five
seconds or more, and those that ask while nothing is under way."""

KEEPALIVE_PATIENCE = 3.0
"""How long it may take to answer to that."""

_PONG_SECONDS = 0.5
"""How long a question whether we are there waits for its answer. etcd measures with it how much is under way, and asks
anew with the next request that comes once it is answered: without the wait that is once for each request. Who wants to
know whether we live is more patient than that (etcd: 20 s)."""

_MOST_PINGS = 1000
"""Such questions in that time: more is no question."""

_PING = b"registry"


class Keepalive:
    """Of one connection."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        """``write`` sends frames; nothing, once the connection has ended."""
        self._write = write
        self._loop = asyncio.get_running_loop()
        self._pongs: list[bytes] = []
        self.is_heard = False
        """To be set when anything has come."""
        self._heard = self._loop.time()
        self._asked = math.inf

    def forgive(self) -> None:
        """To be called when there is something to wait for again: meanwhile nobody looked for an answer."""
        self._asked = math.inf

    def is_gone(self, now: float) -> bool:
        """Whether the peer does not answer any more. If it is only silent, it is asked."""
        if self.is_heard:
            self.is_heard, self._heard, self._asked = False, now, math.inf
        if self._asked == math.inf and self._heard + KEEPALIVE_SECONDS <= now:
            self._asked = now
            self._write(frames.ping(_PING))
        return self._asked + KEEPALIVE_PATIENCE <= now

    def take(self, flags: int, content: bytes) -> None:
        """A ping has come, or the answer to one. Raises ProtocolError."""
        if len(content) != len(_PING):
            raise ProtocolError("a frame of the wrong size", frames.FRAME_SIZE_ERROR)
        if flags & frames.ACK:
            return
        if not self._pongs:
            self._loop.call_later(_PONG_SECONDS, self._answer)
        self._pongs.append(frames.ping(content, ack=True))
        if len(self._pongs) > _MOST_PINGS:
            raise ProtocolError("questions without an end", frames.ENHANCE_YOUR_CALM)

    def _answer(self) -> None:
        pongs, self._pongs = self._pongs, []
        self._write(b"".join(pongs))


STREAM_WINDOW = 16 << 20
CONNECTION_WINDOW = 1 << 30
"""Bytes that the peer may send before it hears that they were read: the peer is told at half of that."""

_HALF_STREAM, _HALF_CONNECTION = STREAM_WINDOW // 2, CONNECTION_WINDOW // 2

_LOOK_SECONDS = 0.1
"""How often deadlines are looked at: one timer for all is cheaper than one for each call."""

_LOOK_SELDOM_SECONDS = 1.0
"""The same where nothing has one."""

_MOST_UNREAD = 64 << 20
"""Bytes: a peer that asks and asks and does not read our answers is left."""

_GOODBYE_SECONDS = 0.5

_OPENING = (
    frames.PREFACE
    + frames.settings({
        frames.HEADER_TABLE_SIZE: 0,
        frames.ENABLE_PUSH: 0,
        frames.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
    })
    + frames.window_update(0, CONNECTION_WINDOW - frames.DEFAULT_WINDOW)
)  # fmt: skip


class Connection(asyncio.Protocol):
    """To be used when ``ready`` is done. Once it is not ``usable``, what is under way may still be answered."""

    _outlet: FrameWriter

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        """Done when the peer has greeted us; an RpcError if it is no peer for us."""
        self.usable = False
        """Whether something new can be begun."""
        self.lost = asyncio.Event()
        """Set when nothing is left of it."""
        self._transport: asyncio.Transport | None = None
        self._goodbye: asyncio.TimerHandle | None = None
        self._open: dict[int, Exchange] = {}
        self._waiting: deque[Exchange] = deque()
        self._next_id = 1
        self._most_open = math.inf
        self._heads = HeadReader()
        self._arrived = 0
        self._inlet = FrameReader(self)
        self._pulse = Keepalive(self._write)
        self._looking: asyncio.TimerHandle | None = None

    # What others ask of it

    def begin(self, exchange: Exchange) -> None:
        """Sends a request, or keeps it until the peer takes one more."""
        if not self.usable:
            exchange.end(unavailable("the connection has come to its end", reached=False))
            return
        if len(self._open) < self._most_open and not self._waiting:
            self._start(exchange)
        else:
            self._waiting.append(exchange)
        if self._looking is None:
            self._pulse.forgive()
            self._look_later()

    def send(self, stream: Stream, body: bytes) -> None:
        """One more message on a stream."""
        stream.body = bytes(stream.body) + body if stream.body else body
        if stream.id:
            self._outlet.go_on(stream)

    def abandon(self, exchange: Exchange) -> None:
        """Nobody waits for this one any longer; it does not hear of it."""
        if self._open.get(exchange.id) is exchange:
            self._outlet.write(frames.reset(exchange.id, frames.CANCEL))
            self._drop(exchange)
        elif exchange in self._waiting:
            self._waiting.remove(exchange)

    def let_more_come(self, exchange: Exchange) -> None:
        """What has come on an exchange is read."""
        if exchange.arrived >= _HALF_STREAM and exchange.id in self._open:
            self._outlet.write(frames.window_update(exchange.id, exchange.arrived))
            exchange.arrived = 0

    def close(self) -> None:
        """Ends it, and all that is under way on it."""
        self._end(unavailable("the connection was closed by us"))

    # What the transport tells

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._outlet = FrameWriter(transport)
        transport.write(_OPENING)

    def data_received(self, data: bytes) -> None:
        self._pulse.is_heard = True
        if self._inlet.rest:
            data = self._inlet.rest + data
        if not self.ready.done() and not self._is_greeted(data):
            return
        try:
            self._inlet.feed(data)
        except ProtocolError as error:
            self._break_off(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()
        if self._goodbye is not None:
            self._goodbye.cancel()
        if self.ready.done():
            self._end(unavailable(f"the connection was lost: {exc}" if exc else "it has closed the connection"))
        else:
            self._end(strange_greeting(self._inlet.rest, exc))

    def _is_greeted(self, data: bytes) -> bool:
        """Whether the peer speaks HTTP/2 with us; as long as that is not clear, its data is kept."""
        if len(data) < frames.HEAD_SIZE:
            self._inlet.rest = data
            return False
        if not is_greeting(data):
            self._end(strange_greeting(data, None))
            return False
        return True

    # What the inlet tells: frames

    def on_data(self, flags: int, stream: int, content: bytes) -> None:
        size = len(content)
        self._arrived += size
        if self._arrived >= _HALF_CONNECTION:
            self._outlet.write(frames.window_update(0, self._arrived))
            self._arrived = 0
        exchange = self._open.get(stream) or self._exchange(stream)
        if exchange is None:
            return
        exchange.arrived += size
        data = frames.without_padding(flags, content) if flags & frames.PADDED else content
        error = exchange.take(data) if data else None
        if error is None and flags & frames.END_STREAM:
            error = unavailable("an answer that breaks off")
        if error is not None:
            if stream in self._open:  # else its sink has ended it
                self._finish(exchange, error)
        elif exchange.arrived >= _HALF_STREAM:
            if exchange.arrived > STREAM_WINDOW:
                raise ProtocolError("more than a window holds", frames.FLOW_CONTROL_ERROR)
            if not exchange.is_full:
                self.let_more_come(exchange)

    def on_block(self, flags: int, stream: int, block: bytes) -> None:
        exchange = self._open.get(stream) or self._exchange(stream)
        if exchange is None:
            return
        last = bool(flags & frames.END_STREAM)
        error = exchange.take_head(self._heads.read(block), last=last)
        if error is not None or last:
            self._finish(exchange, error)

    def on_reset(self, _: int, stream: int, content: bytes) -> None:
        code = frames.number(content)
        exchange = self._exchange(stream)
        if exchange is not None:
            self._drop(exchange)
            reached = code != frames.REFUSED_STREAM and exchange.is_sent
            exchange.end(unavailable(f"the request was ended with {frames.error_name(code)}", reached=reached))

    def on_settings(self, flags: int, stream: int, content: bytes) -> None:
        if stream:
            raise ProtocolError("settings on a stream")
        if flags & frames.ACK:
            return
        values = dict(frames.read_settings(content))
        # First: what the new ones let go may be more than the old ones allow, which hold until the peer hears of it.
        self._outlet.write(frames.SETTINGS_ACK)
        self._check_that_it_reads()
        self._most_open = values.get(frames.MAX_CONCURRENT_STREAMS, self._most_open)
        if frames.MAX_FRAME_SIZE in values:
            self._outlet.set_largest(values[frames.MAX_FRAME_SIZE])
        if frames.INITIAL_WINDOW_SIZE in values:
            self._outlet.resize(values[frames.INITIAL_WINDOW_SIZE], list(self._open.values()))
        if not self.ready.done():
            self.usable = True
            self.ready.set_result(None)
        self._start_waiting()

    def on_ping(self, flags: int, stream: int, content: bytes) -> None:  # noqa: ARG002 - there is but one pulse
        self._pulse.take(flags, content)
        self._check_that_it_reads()

    def on_goaway(self, _: int, stream: int, content: bytes) -> None:  # noqa: ARG002 - there is but one
        last, code, text = frames.read_goaway(content)
        self.usable = False
        said = f"it ends the connection with {frames.error_name(code)}" + (f": {text}" if text else "")
        for exchange in [each for each in self._open.values() if each.id > last]:
            self._drop(exchange)
            exchange.end(unavailable(said, reached=False))
        waiting, self._waiting = self._waiting, deque()
        for exchange in waiting:
            exchange.end(unavailable(said, reached=False))
        if not self._open:
            self._end(unavailable(said))

    def on_window_update(self, _: int, stream: int, content: bytes) -> None:
        increment = frames.number(content) & frames.LARGEST_WINDOW
        exchange = self._exchange(stream) if stream else None
        if exchange is not None or not stream:
            self._outlet.allow(exchange, increment)

    def _exchange(self, stream: int) -> Exchange | None:
        """The one that a frame is about; None if it has ended meanwhile. Raises ProtocolError if there was none."""
        exchange = self._open.get(stream)
        if exchange is None and (stream >= self._next_id or not stream & 1):
            raise ProtocolError(f"a frame for stream {stream}, which there is not")
        return exchange

    # Exchanges

    def _start(self, exchange: Exchange) -> None:
        exchange.id = self._next_id
        self._open[exchange.id] = exchange
        self._next_id += 2
        if self._next_id > frames.LAST_STREAM:  # the next one needs another connection
            self.usable = False
        self._outlet.begin(exchange)

    def _start_waiting(self) -> None:
        while self._waiting and self.usable and len(self._open) < self._most_open:
            self._start(self._waiting.popleft())

    def _finish(self, exchange: Exchange, error: RpcError | None) -> None:
        """The peer has answered, in one way or another."""
        if error is not None or exchange.body or not exchange.ends:
            # It may not have noticed that we are done, or be waiting for the rest of what we have to say.
            self._outlet.write(frames.reset(exchange.id, frames.CANCEL))
        self._drop(exchange)
        exchange.end(error)

    def _drop(self, exchange: Exchange) -> None:
        del self._open[exchange.id]
        self._outlet.forget(exchange)
        if self._waiting:
            # Not at once: those who wait may be given up in this very turn, as all are whose client is gone.
            self._loop.call_soon(self._start_waiting)
        if not self.usable and not self._open:
            self._end(unavailable("the connection has come to its end", reached=False))

    def _write(self, frame: bytes) -> None:
        if self._goodbye is None and not self.lost.is_set():
            self._outlet.write(frame)

    def _check_that_it_reads(self) -> None:
        """For what makes us send something."""
        if self._outlet.unread > _MOST_UNREAD:
            raise ProtocolError("questions without an end", frames.ENHANCE_YOUR_CALM)

    # Time

    def _look_later(self) -> None:
        has_calls = self._waiting or any(each.deadline < math.inf for each in self._open.values())
        delay = _LOOK_SECONDS if has_calls else _LOOK_SELDOM_SECONDS
        self._looking = self._loop.call_later(delay, self._look)

    def _look(self) -> None:
        """Ends what has taken too long, and notices a peer that is gone."""
        self._looking = None
        now = self._loop.time()
        for exchange in [each for each in (*self._open.values(), *self._waiting) if each.deadline <= now]:
            sent = exchange.is_sent
            self.abandon(exchange)
            exchange.end(RpcError(StatusCode.DEADLINE_EXCEEDED, "no answer came in time", reached=sent))
        if self._pulse.is_gone(now):
            self._end(unavailable("it did not answer when it was asked whether it is there"))
        elif self._open or self._waiting:
            self._look_later()

    # The end

    def _break_off(self, error: ProtocolError) -> None:
        """The peer has done something that it must not do."""
        self._outlet.write(frames.goaway(error.code, str(error)))
        self._outlet.flush()
        self._end(unavailable(f"it does not keep to HTTP/2: {error}"))

    def _end(self, error: RpcError) -> None:
        """Ends the connection, and all that goes on on it. Idempotent."""
        self.usable, self._inlet.rest = False, b""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        if not self.ready.done():
            self.ready.set_exception(RpcError(error.code, error.details, reached=False))
            self.ready.exception()  # it may be that nobody waits any longer
        self._hang_up()
        exchanges = [*self._open.values(), *self._waiting]
        self._open, self._waiting = {}, deque()
        for exchange in exchanges:
            exchange.end(RpcError(error.code, error.details, reached=error.reached and exchange.is_sent))

    def _hang_up(self) -> None:
        if self._transport is None:  # it never came so far
            self.lost.set()
        elif self._goodbye is None and not self.lost.is_set():
            self._outlet.flush()
            self._transport.close()
            # A peer that does not read, or does not say goodbye to TLS, is not waited for.
            self._goodbye = self._loop.call_later(_GOODBYE_SECONDS, self._walk_away, self._transport)

    def _walk_away(self, transport: asyncio.Transport) -> None:
        transport.abort()
        # uvloop does not tell of the end of a transport that it was just making when that was cancelled.
        self.lost.set()
