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
from websockets.protocol import Protocol, Side

from clusterregistry.apiserver.http.response import SharedPiece
from clusterregistry.apiserver.http.transport import ClientTransport

MAX_MESSAGE = 4096
"""Bytes of a client's message. It is dropped: the client of a stream has nothing to say."""

CLOSE_SECONDS = 1.0
"""How long the client may take to answer a close frame before the connection is closed."""

_log = logging.getLogger(__name__)


class WebSocket:
    """The outlet of a stream, and the reader of the client's frames."""

    __slots__ = ("_close", "_messages", "_protocol", "_transport")

    def __init__(self, transport: ClientTransport, close: Callable[[], None], *, is_binary: bool = False) -> None:
        """``close`` closes the connection once everything is written. ``is_binary``: see ``WebSocketResponse``."""
        self._messages = binary_messages if is_binary else text_messages
        self._transport = transport
        self._close = close
        self._protocol = Protocol(Side.SERVER, max_size=MAX_MESSAGE, logger=_log)

    def receive(self, data: bytes) -> None:
        """Reads bytes of the client: answers a ping, drops messages, and ends with a close frame or a wrong one."""
        protocol = self._protocol
        protocol.receive_data(data)
        protocol.events_received()
        closing = protocol.close_expected()
        for frame in protocol.data_to_send():
            # A client that sends pings and reads nothing is not answered: its answers would fill our memory.
            if frame and (closing or self._transport.is_writable):
                self._transport.write(frame)
        if closing:
            self._close()

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
