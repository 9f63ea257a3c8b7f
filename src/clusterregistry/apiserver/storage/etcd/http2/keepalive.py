"""Whether the peer is still there, and that we are: pings in both directions."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from clusterregistry.apiserver.storage.etcd.http2 import frames
from clusterregistry.apiserver.storage.etcd.http2.frames import ProtocolError

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


class Pulse:
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
