"""What goes out on a connection: everything of one turn of the loop in one write, and no more than the peer takes."""

from __future__ import annotations

import asyncio

from clusterregistry.apiserver.storage.etcd.http2 import frames
from clusterregistry.apiserver.storage.etcd.http2.streams import Exchange


class FrameWriter:
    """The sending half of a connection."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._pending: list[bytes] = []
        self._blocked: dict[Exchange, None] = {}
        self._window = frames.DEFAULT_WINDOW
        self._initial_window = frames.DEFAULT_WINDOW
        self._largest = frames.SMALLEST_MAX_FRAME

    @property
    def unread(self) -> int:
        """Bytes that the peer does not take."""
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Sends something with all else of this turn."""
        if not self._pending:
            self._loop.call_soon(self.flush)
        self._pending.append(data)

    def flush(self) -> None:
        data, self._pending = b"".join(self._pending), []
        if data and not self._transport.is_closing():  # the connection may have been lost in this very turn
            self._transport.write(data)

    def begin(self, exchange: Exchange) -> None:
        """Sends the headers of an exchange, which has its number, and as much of its body as is possible now."""
        exchange.window = self._initial_window
        self.write(frames.header_block(exchange.block, stream=exchange.id, largest=self._largest))
        self.go_on(exchange)

    def go_on(self, exchange: Exchange) -> None:
        """Sends of a body what the windows allow; the rest follows when they are opened."""
        body, stream = exchange.body, exchange.id
        size = len(body)
        if size <= self._largest and size <= self._window and size <= exchange.window and not self._blocked:
            self._count(exchange, size)
            exchange.body = b""
            flags = frames.END_STREAM if exchange.ends else 0
            self.write(frames.head(size, kind=frames.DATA, flags=flags, stream=stream) + body)
        else:
            exchange.body = memoryview(body)  # else the rest would be copied each time
            self._blocked[exchange] = None
            self.unblock()

    def forget(self, exchange: Exchange) -> None:
        """Nothing more of this one is sent."""
        self._blocked.pop(exchange, None)

    def allow(self, exchange: Exchange | None, increment: int) -> None:
        """The peer takes more, of one exchange or of all together. Raises ProtocolError."""
        if not increment:
            raise frames.ProtocolError("a window that is opened by nothing")
        if exchange is None:
            self._window += increment
        else:
            exchange.window += increment
        if (self._window if exchange is None else exchange.window) > frames.LARGEST_WINDOW:
            raise frames.ProtocolError("a window that is too large", frames.FLOW_CONTROL_ERROR)
        self.unblock()

    def resize(self, window: int, exchanges: list[Exchange]) -> None:
        """The window of each stream is another from now on; what was sent of those under way still counts."""
        difference, self._initial_window = window - self._initial_window, window
        for exchange in exchanges:
            exchange.window += difference
        self.unblock()

    def set_largest(self, size: int) -> None:
        """The size of frames that the peer takes."""
        self._largest = size

    def unblock(self) -> None:
        """Goes on with bodies that had to wait, in the order in which they came."""
        for exchange in list(self._blocked):
            self._send_part(exchange)
            if not exchange.body:
                del self._blocked[exchange]
            if self._window <= 0:
                return

    def _send_part(self, exchange: Exchange) -> None:
        body = exchange.body
        room = max(0, min(self._window, exchange.window, len(body)))
        for at in range(0, room, self._largest):
            size = min(self._largest, room - at)
            last = at + size == len(body) and exchange.ends
            flags = frames.END_STREAM if last else 0
            self.write(frames.head(size, kind=frames.DATA, flags=flags, stream=exchange.id) + body[at : at + size])
        self._count(exchange, room)
        exchange.body = body[room:]

    def _count(self, exchange: Exchange, size: int) -> None:
        self._window -= size
        exchange.window -= size
