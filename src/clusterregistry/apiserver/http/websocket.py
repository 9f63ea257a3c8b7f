"""A WebSocket (RFC 6455) on a connection whose request has switched to it: messages to the client, control frames back.

The frames of the client are read by ``websockets``, which knows the rules of the protocol; it does no input or output.
Imported with the first WebSocket: few servers have any.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import Protocol, Side, State

from clusterregistry.apiserver.http.response import SharedPiece
from clusterregistry.apiserver.http.transport import ClientTransport

MAX_MESSAGE = 4096
"""Bytes of a client's message. It is dropped: the client of a stream has nothing to say."""

MAX_FRAMES = 500
FRAMES_PER_SECOND = 20.0
"""Frames that a client may send at once, and later. A frame of six bytes takes 2 us: a client that sends nothing else
would delay the others by a second and more."""

_SLICE = 1024
"""Bytes that are read between two looks at the number of frames."""

CLOSE_SECONDS = 1.0
"""How long the client may take to answer a close frame before the connection is closed."""

_log = logging.getLogger(__name__)


class WebSocket:
    """The outlet of a stream, and the reader of the client's frames."""

    __slots__ = ("_allowed", "_close", "_messages", "_protocol", "_seen_at", "_transport")

    def __init__(self, transport: ClientTransport, close: Callable[[], None], *, is_binary: bool = False) -> None:
        """``close`` closes the connection once everything is written. ``is_binary``: see ``WebSocketResponse``."""
        self._messages = binary_messages if is_binary else text_messages
        self._transport = transport
        self._close = close
        self._protocol = Protocol(Side.SERVER, max_size=MAX_MESSAGE, logger=_log)
        self._allowed, self._seen_at = float(MAX_FRAMES), 0.0
        """Frames that the client may send now, and when that was computed."""

    def receive(self, data: bytes) -> None:
        """Reads bytes of the client: answers a ping, drops messages, and ends with a close frame or a wrong one."""
        protocol = self._protocol
        for start in range(0, len(data), _SLICE):
            protocol.receive_data(data[start : start + _SLICE])
            self._count(len(protocol.events_received()))
        closing = protocol.close_expected()
        answer = b"".join(protocol.data_to_send())
        # A client that sends pings and reads nothing is not answered: its answers would fill our memory.
        if answer and (closing or self._transport.is_writable):
            self._transport.write(answer)
        if closing:
            self._close()

    def _count(self, frames: int) -> None:
        """Ends the connection of a client that sends too many frames; whatever else it sends is then ignored."""
        now = asyncio.get_running_loop().time()
        earned = (now - self._seen_at) * FRAMES_PER_SECOND
        self._allowed, self._seen_at = min(self._allowed + earned, MAX_FRAMES) - frames, now
        if self._allowed < 0 and self._protocol.state is State.OPEN:
            self._protocol.fail(CloseCode.POLICY_VIOLATION, "too many frames")

    async def send(self, data: bytes) -> None:
        await self._transport.drain()
        if data and not self._transport.is_closing:
            self._transport.write(self._messages(data))

    def offer(self, batch: SharedPiece) -> bool:
        made = batch.as_messages
        if made is None:
            made = batch.as_messages = self._messages(batch.data)
        return self._transport.write_at_once(made)

    async def end(self) -> None:
        """Ends a stream that is complete with a close frame, and waits shortly for that of the client."""
        await self._transport.drain()
        if self._transport.is_closing:
            return
        self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
        self._transport.write(b"".join(self._protocol.data_to_send()))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while not self._transport.is_lost:
                    await self._transport.change()


def text_messages(data: bytes) -> bytes:
    """The text frames of lines of JSON, which have no line breaks within them."""
    return b"".join([Frame(Opcode.TEXT, line).serialize(mask=False) for line in data.splitlines(keepends=True)])


def binary_messages(data: bytes) -> bytes:
    """The binary frames of messages with their lengths before them, which a WebSocket does not need."""
    found, at = [], 0
    while at < len(data):
        begin = at + 4
        at = begin + int.from_bytes(data[at:begin])
        found.append(Frame(Opcode.BINARY, data[begin:at]).serialize(mask=False))
    return b"".join(found)
