"""Flow control: sends the frames of one turn of the event loop in one write, within the windows of the peer."""

from __future__ import annotations

import asyncio

from clusterregistry.apiserver.storage.etcd.http2 import frames
from clusterregistry.apiserver.storage.etcd.http2.streams import BaseStream


class FrameWriter:
    """The sending half of a connection."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._pending: list[bytes] = []
        self._blocked: dict[BaseStream, None] = {}
        self._window = frames.DEFAULT_WINDOW
        self._initial_window = frames.DEFAULT_WINDOW
        self._largest = frames.SMALLEST_MAX_FRAME

    @property
    def unread(self) -> int:
        """Bytes that the peer has not read."""
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Sends frames together with all others of this turn."""
        if not self._pending:
            self._loop.call_soon(self.flush)
        self._pending.append(data)

    def flush(self) -> None:
        data, self._pending = b"".join(self._pending), []
        if data and not self._transport.is_closing():  # the connection may have been lost in this turn
            self._transport.write(data)

    def send_request(self, stream: BaseStream) -> None:
        """Sends the headers of a stream that has its ID, and as much of its body as the windows allow."""
        stream.window = self._initial_window
        self.write(frames.headers(stream.block, stream_id=stream.id, largest=self._largest))
        self.send_body(stream)

    def send_body(self, stream: BaseStream) -> None:
        """Sends what the windows allow of a body; the rest follows when the peer widens them."""
        body = stream.body
        size = len(body)
        if size <= self._largest and size <= self._window and size <= stream.window and not self._blocked:
            self._window -= size
            stream.window -= size
            stream.body = b""
            flags = frames.END_STREAM if stream.is_half_closed else 0
            self.write(frames.header(size, kind=frames.DATA, flags=flags, stream_id=stream.id) + body)
        else:
            stream.body = memoryview(body)  # otherwise each part sent would copy the rest
            self._blocked[stream] = None
            self._unblock()

    def forget(self, stream: BaseStream) -> None:
        """Sends nothing more of a stream."""
        self._blocked.pop(stream, None)

    def widen(self, stream: BaseStream | None, increment: int) -> None:
        """Widens the window of one stream, or of the connection (None). Raises ProtocolError."""
        if not increment:
            raise frames.ProtocolError("a window update of zero")
        if stream is None:
            self._window += increment
        else:
            stream.window += increment
        if (self._window if stream is None else stream.window) > frames.LARGEST_WINDOW:
            raise frames.ProtocolError("a window that is too large", frames.FLOW_CONTROL_ERROR)
        self._unblock()

    def resize(self, window: int, streams: list[BaseStream]) -> None:
        """Changes the initial window of streams; what open streams have sent still counts."""
        difference, self._initial_window = window - self._initial_window, window
        for stream in streams:
            stream.window += difference
        self._unblock()

    def set_largest(self, size: int) -> None:
        """Sets the largest frame that the peer accepts."""
        self._largest = size

    def _unblock(self) -> None:
        """Continues with blocked bodies in their order."""
        for stream in list(self._blocked):
            self._send_part(stream)
            if not stream.body:
                del self._blocked[stream]
            if self._window <= 0:
                return

    def _send_part(self, stream: BaseStream) -> None:
        body = stream.body
        room = max(0, min(self._window, stream.window, len(body)))
        for at in range(0, room, self._largest):
            size = min(self._largest, room - at)
            is_last = at + size == len(body) and stream.is_half_closed
            flags = frames.END_STREAM if is_last else 0
            part = body[at : at + size]
            self.write(frames.header(size, kind=frames.DATA, flags=flags, stream_id=stream.id) + part)
        self._window -= room
        stream.window -= room
        stream.body = body[room:]
