"""One HTTP/2 connection: handshake, frames in both directions, streams, deadlines and keepalive.

It belongs to one event loop. If the peer violates the protocol, the connection ends with a reason and every stream on
it fails; the error of each stream says whether its request can have reached the peer.
"""

from __future__ import annotations

import asyncio
import math
import ssl
from collections import deque
from collections.abc import Callable

from clusterregistry.apiserver.storage.etcd.http2 import frames
from clusterregistry.apiserver.storage.etcd.http2.flow import FrameWriter
from clusterregistry.apiserver.storage.etcd.http2.frames import FrameReader, ProtocolError
from clusterregistry.apiserver.storage.etcd.http2.streams import BaseStream, RpcError, StatusCode, Stream, unavailable

STREAM_WINDOW = 16 << 20
CONNECTION_WINDOW = 1 << 30
"""Bytes that the peer may send before they are acknowledged, which happens at half of that."""

_HALF_STREAM, _HALF_CONNECTION = STREAM_WINDOW // 2, CONNECTION_WINDOW // 2

KEEPALIVE_SECONDS = 10.0
"""How long a peer may be silent before it gets a ping. etcd ends connections that ping every five seconds or more
often, and those that ping while no stream is open."""

KEEPALIVE_PATIENCE = 3.0
"""How long the peer may take to answer the ping."""

_PONG_SECONDS = 0.5
"""How long a ping of the peer waits for its answer. etcd measures the bandwidth with it, and sends the next ping with
the next request once the last one is answered: without the delay that is one per request. A keepalive of etcd waits
longer than that (20 s)."""

_MOST_PINGS = 1000
"""Pings of the peer in that time: more are an attack."""

_PING = b"registry"

_CHECK_SECONDS = 0.1
"""How often deadlines are checked: one timer for all is cheaper than one per call."""

_IDLE_CHECK_SECONDS = 1.0
"""How often the keepalive is checked while no stream has a deadline."""

_MOST_UNREAD = 64 << 20
"""Bytes: a peer that requests answers and does not read them is disconnected."""

_CLOSE_SECONDS = 0.5

_PREFACE = (
    frames.PREFACE
    + frames.settings({
        frames.HEADER_TABLE_SIZE: 0,
        frames.ENABLE_PUSH: 0,
        frames.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
    })
    + frames.window_update(0, CONNECTION_WINDOW - frames.DEFAULT_WINDOW)
)  # fmt: skip


class Connection(asyncio.Protocol):
    """A connection. ``ready`` is done after the handshake. Without ``usable``, open streams may still finish."""

    _writer: FrameWriter

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        """Done after the handshake; an RpcError if the peer does not speak HTTP/2."""
        self.usable = False
        """True if new streams can be opened."""
        self.lost = asyncio.Event()
        """Set once the transport is closed."""
        self._transport: asyncio.Transport | None = None
        self._closing: asyncio.TimerHandle | None = None
        self._open: dict[int, BaseStream] = {}
        self._waiting: deque[BaseStream] = deque()
        self._next_id = 1
        self._most_open = math.inf
        self._unacknowledged = 0
        self._reader = FrameReader(self)
        self._keepalive = Keepalive(self._write)
        self._timer: asyncio.TimerHandle | None = None

    # Used by channels and streams

    def open(self, stream: BaseStream) -> None:
        """Sends a request, or queues it until the peer accepts one more stream."""
        if not self.usable:
            stream.end(unavailable("the connection is closing", reached=False))
            return
        if len(self._open) < self._most_open and not self._waiting:
            self._start(stream)
        else:
            self._waiting.append(stream)
        if self._timer is None:
            self._keepalive.restart()
            self._start_timer()

    def send(self, stream: Stream, body: bytes) -> None:
        """Sends one more message on a stream."""
        stream.body = bytes(stream.body) + body if stream.body else body
        if stream.id:
            self._writer.send_body(stream)

    def abandon(self, stream: BaseStream) -> None:
        """Resets a stream without ending it: its caller does not wait any more."""
        if self._open.get(stream.id) is stream:
            self._writer.write(frames.reset(stream.id, frames.CANCEL))
            self._remove(stream)
        elif stream in self._waiting:
            self._waiting.remove(stream)

    def acknowledge(self, stream: BaseStream) -> None:
        """Reopens the window of a stream whose messages were read."""
        if stream.unacknowledged >= _HALF_STREAM and stream.id in self._open:
            self._writer.write(frames.window_update(stream.id, stream.unacknowledged))
            stream.unacknowledged = 0

    def close(self) -> None:
        """Ends the connection and all of its streams."""
        self._end(unavailable("the connection was closed by this side"))

    # Called by the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._writer = FrameWriter(transport)
        transport.write(_PREFACE)

    def data_received(self, data: bytes) -> None:
        self._keepalive.is_active = True
        if self._reader.rest:
            data = self._reader.rest + data
        if not self.ready.done() and not self._check_handshake(data):
            return
        try:
            self._reader.feed(data)
        except ProtocolError as error:
            self._writer.write(frames.goaway(error.code, str(error)))
            self._writer.flush()
            self._end(unavailable(f"it violates HTTP/2: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()
        if self._closing is not None:
            self._closing.cancel()
        if self.ready.done():
            self._end(unavailable(f"the connection was lost: {exc}" if exc else "it has closed the connection"))
        else:
            self._end(handshake_error(self._reader.rest, exc))

    def _check_handshake(self, data: bytes) -> bool:
        """True if the peer speaks HTTP/2; until that is clear, its data is kept."""
        if len(data) < frames.HEADER_SIZE:
            self._reader.rest = data
            return False
        if not is_handshake(data):
            self._end(handshake_error(data, None))
            return False
        return True

    # Called by the frame reader

    def on_data(self, flags: int, stream_id: int, content: bytes) -> None:
        size = len(content)
        self._unacknowledged += size
        if self._unacknowledged >= _HALF_CONNECTION:
            self._writer.write(frames.window_update(0, self._unacknowledged))
            self._unacknowledged = 0
        stream = self._open.get(stream_id) or self._find(stream_id)
        if stream is None:
            return
        stream.unacknowledged += size
        data = frames.without_padding(flags, content) if flags & frames.PADDED else content
        error = stream.receive_data(data) if data else None
        if error is None and flags & frames.END_STREAM:
            error = unavailable("a response that breaks off")
        if error is not None:
            if stream_id in self._open:  # otherwise its sink has ended it
                self._finish(stream, error)
        elif stream.unacknowledged >= _HALF_STREAM:
            if stream.unacknowledged > STREAM_WINDOW:
                raise ProtocolError("more data than the window allows", frames.FLOW_CONTROL_ERROR)
            if not stream.is_full:
                self.acknowledge(stream)

    def on_headers(self, flags: int, stream_id: int, block: bytes) -> None:
        stream = self._open.get(stream_id) or self._find(stream_id)
        if stream is None:
            return
        last = bool(flags & frames.END_STREAM)
        error = stream.receive_head(frames.decode_headers(block), last=last)
        if error is not None or last:
            self._finish(stream, error)

    def on_reset(self, _: int, stream_id: int, content: bytes) -> None:
        code = frames.number(content)
        stream = self._find(stream_id)
        if stream is not None:
            self._remove(stream)
            reached = code != frames.REFUSED_STREAM and stream.is_sent
            stream.end(unavailable(f"the request was reset with {frames.error_name(code)}", reached=reached))

    def on_settings(self, flags: int, stream_id: int, content: bytes) -> None:
        if stream_id:
            raise ProtocolError("settings on a stream")
        if flags & frames.ACK:
            return
        values = dict(frames.read_settings(content))
        # First: the new settings may allow more to be sent than the old ones, which hold until the peer gets the ACK.
        self._writer.write(frames.SETTINGS_ACK)
        self._check_unread()
        self._most_open = values.get(frames.MAX_CONCURRENT_STREAMS, self._most_open)
        if frames.MAX_FRAME_SIZE in values:
            self._writer.set_largest(values[frames.MAX_FRAME_SIZE])
        if frames.INITIAL_WINDOW_SIZE in values:
            self._writer.resize(values[frames.INITIAL_WINDOW_SIZE], list(self._open.values()))
        if not self.ready.done():
            self.usable = True
            self.ready.set_result(None)
        self._start_waiting()

    def on_ping(self, flags: int, stream_id: int, content: bytes) -> None:  # noqa: ARG002 - pings have no stream
        self._keepalive.receive(flags, content)
        self._check_unread()

    def on_goaway(self, _: int, stream_id: int, content: bytes) -> None:  # noqa: ARG002 - as above
        last, code, text = frames.read_goaway(content)
        self.usable = False
        reason = f"it ends the connection with {frames.error_name(code)}" + (f": {text}" if text else "")
        for stream in [each for each in self._open.values() if each.id > last]:
            self._remove(stream)
            stream.end(unavailable(reason, reached=False))
        waiting, self._waiting = self._waiting, deque()
        for stream in waiting:
            stream.end(unavailable(reason, reached=False))
        if not self._open:
            self._end(unavailable(reason))

    def on_window_update(self, _: int, stream_id: int, content: bytes) -> None:
        increment = frames.number(content) & frames.LARGEST_WINDOW
        stream = self._find(stream_id) if stream_id else None
        if stream is not None or not stream_id:
            self._writer.widen(stream, increment)

    def _find(self, stream_id: int) -> BaseStream | None:
        """The stream of a frame; None if it has ended. Raises ProtocolError if it never existed."""
        stream = self._open.get(stream_id)
        if stream is None and (stream_id >= self._next_id or not stream_id & 1):
            raise ProtocolError(f"a frame for stream {stream_id}, which does not exist")
        return stream

    # Streams

    def _start(self, stream: BaseStream) -> None:
        stream.id = self._next_id
        self._open[stream.id] = stream
        self._next_id += 2
        if self._next_id > frames.LAST_STREAM:  # the next stream needs another connection
            self.usable = False
        self._writer.send_request(stream)

    def _start_waiting(self) -> None:
        while self._waiting and self.usable and len(self._open) < self._most_open:
            self._start(self._waiting.popleft())

    def _finish(self, stream: BaseStream, error: RpcError | None) -> None:
        """Ends a stream that the peer has answered, or whose response is invalid."""
        if error is not None or stream.body or not stream.is_half_closed:
            # The peer may not have noticed the end, or wait for the rest of the request.
            self._writer.write(frames.reset(stream.id, frames.CANCEL))
        self._remove(stream)
        stream.end(error)

    def _remove(self, stream: BaseStream) -> None:
        del self._open[stream.id]
        self._writer.forget(stream)
        if self._waiting:
            # Not at once: waiting streams may be abandoned in this turn, as all are whose client is gone.
            self._loop.call_soon(self._start_waiting)
        if not self.usable and not self._open:
            self._end(unavailable("the connection is closing", reached=False))

    def _write(self, frame: bytes) -> None:
        if self._closing is None and not self.lost.is_set():
            self._writer.write(frame)

    def _check_unread(self) -> None:
        """Raises ProtocolError if the peer requests answers and does not read them."""
        if self._writer.unread > _MOST_UNREAD:
            raise ProtocolError("too many unread answers", frames.ENHANCE_YOUR_CALM)

    # Deadlines and keepalive

    def _start_timer(self) -> None:
        has_calls = self._waiting or any(each.deadline < math.inf for each in self._open.values())
        delay = _CHECK_SECONDS if has_calls else _IDLE_CHECK_SECONDS
        self._timer = self._loop.call_later(delay, self._check)

    def _check(self) -> None:
        """Ends streams whose deadline has passed, and the connection if the peer does not answer pings."""
        self._timer = None
        now = self._loop.time()
        for stream in [each for each in (*self._open.values(), *self._waiting) if each.deadline <= now]:
            sent = stream.is_sent
            self.abandon(stream)
            stream.end(RpcError(StatusCode.DEADLINE_EXCEEDED, "no response in time", reached=sent))
        if self._keepalive.has_failed(now):
            self._end(unavailable("it did not answer a ping"))
        elif self._open or self._waiting:
            self._start_timer()

    # The end

    def _end(self, error: RpcError) -> None:
        """Ends the connection and all of its streams. Idempotent."""
        self.usable, self._reader.rest = False, b""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.ready.done():
            self.ready.set_exception(RpcError(error.code, error.details, reached=False))
            self.ready.exception()  # marks it as retrieved: no caller may be waiting any more
        self._close_transport()
        streams = [*self._open.values(), *self._waiting]
        self._open, self._waiting = {}, deque()
        for stream in streams:
            stream.end(RpcError(error.code, error.details, reached=error.reached and stream.is_sent))

    def _close_transport(self) -> None:
        if self._transport is None:  # it was never connected
            self.lost.set()
        elif self._closing is None and not self.lost.is_set():
            self._writer.flush()
            self._transport.close()
            # A peer that does not read, or does not shut TLS down, is not waited for.
            self._closing = self._loop.call_later(_CLOSE_SECONDS, self._abort, self._transport)

    def _abort(self, transport: asyncio.Transport) -> None:
        transport.abort()
        # uvloop does not call connection_lost for a transport that was cancelled while it was being made.
        self.lost.set()


class Keepalive:
    """The pings of one connection in both directions."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        """``write`` sends a frame, or nothing once the connection has ended."""
        self._write = write
        self._loop = asyncio.get_running_loop()
        self._pongs: list[bytes] = []
        self.is_active = False
        """Set by the connection when data was received."""
        self._last_active = self._loop.time()
        self._pinged_at = math.inf

    def restart(self) -> None:
        """Forgets an unanswered ping: while no stream was open, its answer was not checked."""
        self._pinged_at = math.inf

    def has_failed(self, now: float) -> bool:
        """True if the peer has not answered a ping. Sends a ping if the peer is silent."""
        if self.is_active:
            self.is_active, self._last_active, self._pinged_at = False, now, math.inf
        if self._pinged_at == math.inf and self._last_active + KEEPALIVE_SECONDS <= now:
            self._pinged_at = now
            self._write(frames.ping(_PING))
        return self._pinged_at + KEEPALIVE_PATIENCE <= now

    def receive(self, flags: int, content: bytes) -> None:
        """Handles a ping, or the answer to one. Raises ProtocolError."""
        if len(content) != len(_PING):
            raise ProtocolError("a frame of the wrong size", frames.FRAME_SIZE_ERROR)
        if flags & frames.ACK:
            return
        if not self._pongs:
            self._loop.call_later(_PONG_SECONDS, self._answer)
        self._pongs.append(frames.ping(content, ack=True))
        if len(self._pongs) > _MOST_PINGS:
            raise ProtocolError("too many pings", frames.ENHANCE_YOUR_CALM)

    def _answer(self) -> None:
        pongs, self._pongs = self._pongs, []
        self._write(b"".join(pongs))


# The handshake: HTTP/2 begins with the server's settings

SPEAKS_TLS = "it speaks TLS, and this side does not"
SPEAKS_HTTP1 = "it speaks HTTP/1.1 and no gRPC"
CLOSED = "it has closed the connection"
TLS_REFUSED = "TLS was ended by the other side"

_TLS_ALERT = b"\x15\x03"
_SHOWN = 24
"""Bytes of an unknown protocol that the error shows."""


def is_handshake(data: bytes) -> bool:
    """True if a server speaks HTTP/2, judging by the header of its first frame."""
    high, low, kind, flags, stream_id = frames.HEADER.unpack_from(data)
    size = high << 8 | low
    return kind == frames.SETTINGS and not flags and not stream_id and size <= frames.SMALLEST_MAX_FRAME


def handshake_error(data: bytes, lost: Exception | None) -> RpcError:
    """The error for a server that sent something else, or closed the connection at once."""
    if data.startswith(_TLS_ALERT):
        details = SPEAKS_TLS
    elif data.startswith(b"HTTP/1"):
        details = SPEAKS_HTTP1
    elif data:
        details = f"it does not speak HTTP/2, but begins with {data[:_SHOWN]!r}"
    elif isinstance(lost, ssl.SSLError):
        # With TLS 1.3 the client's handshake is complete before the server rejects the client's certificate.
        details = f"{TLS_REFUSED}: {lost}"
    else:
        details = f"{CLOSED}: {lost}" if lost else CLOSED
    return unavailable(details, reached=False)
