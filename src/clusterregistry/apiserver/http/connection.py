"""One connection: its requests are answered one after the other, in the order in which they came.

What is known at once is answered at once. A task is made only for a request that has to wait, for its answer, its body
or its client.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Protocol

from clusterregistry.apiserver.filters.interface import Handler
from clusterregistry.apiserver.http import response_writer
from clusterregistry.apiserver.http.parser import RequestParser
from clusterregistry.apiserver.http.request import ClientGoneError
from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import Answer, Reply, Response, text_response
from clusterregistry.apiserver.http.transport import ClientTransport

HEAD_SECONDS = 32.0
"""How long a client may take for the head of a request, as kube-apiserver has it."""

IDLE_SECONDS = 620.0
"""More than the ten minutes after which common load balancers drop an idle connection themselves."""

WRITE_SECONDS = 60.0
"""How long a client that does not read may keep an answer, or the events of a watch, in our memory."""

_GOODBYE = 0.5
"""Seconds that a client whom we do not want to hear any more has for its part of TLS's goodbye."""

_log = logging.getLogger(__name__)


class ServerContext(Protocol):
    """What a connection needs of its server."""

    loop: asyncio.AbstractEventLoop
    """To ask for the one that runs is a system call, each time, before Python 3.12."""
    handler: Handler
    stopping: bool
    now: float
    """The loop's time, to the second."""
    date: bytes
    """The header."""
    buffer: memoryview
    """Where what a client sends is put, until it is looked at in the same turn of the loop."""

    def joined(self, connection: Connection) -> None: ...

    def left(self, connection: Connection) -> None:
        """The connection has ended, and so has all work for it."""


class Connection(asyncio.BufferedProtocol):
    """Between a transport and the handler.

    With a buffer for what comes: without one uvloop takes 256 KB from the system for whatever is read over TLS, and
    gives it back, which is a quarter of what a GET costs.
    """

    __slots__ = ("_reader", "_server", "_task", "_wire", "begun", "deadline", "holder", "write_deadline")

    _reader: RequestParser
    _wire: ClientTransport

    def __init__(self, server: ServerContext, holder: str = "") -> None:
        self._server = server
        self._task: asyncio.Task[None] | None = None
        """That of the request which is waited for."""
        self.holder = holder
        """Whom its place is given to."""
        self.begun = False
        """Whether there is a client that can talk to us: its handshake is over."""
        self.deadline = math.inf
        """When what the client has to say has been waited for long enough, in the time of the loop."""
        self.write_deadline = math.inf
        """When it must have read of what it was sent."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.begun = True
        self._wire = ClientTransport(transport)
        self._reader = RequestParser(self._wire)
        self._expect_head()
        self._server.joined(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why does not matter
        self._wire.on_lost()
        self._reader.close()
        if self._task is None:
            self._server.left(self)

    def pause_writing(self) -> None:
        self._wire.on_full()
        self.write_deadline = self._server.now + WRITE_SECONDS

    def resume_writing(self) -> None:
        self.write_deadline = math.inf
        self._wire.on_room()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - there is but one
        return self._server.buffer

    def buffer_updated(self, nbytes: int) -> None:
        reader = self._reader
        was_in_head, was_between_messages = reader.in_head, reader.between_messages
        reader.feed(bytes(self._server.buffer[:nbytes]))
        if reader.requests or reader.refusal:
            # In the loop's next turn: with many clients it is cheaper to read from all, and then to answer all.
            self._server.loop.call_soon(self._go_on)
        elif reader.in_head and not was_in_head:
            self._expect_head()
        elif reader.between_messages and not was_between_messages:  # the end of a body that nobody wanted
            self.deadline = self._server.now + IDLE_SECONDS

    def finish(self) -> None:
        """The server is stopping: a request under way is still answered, an idle connection is closed."""
        if not self._reader.requests:
            self._end_soon()

    def end(self) -> None:
        """Ends it at once, and what is being done for it."""
        self._wire.abort()
        if self._task is not None:
            self._task.cancel()

    def expire(self) -> None:
        """The client was waited for long enough."""
        slow_reader = self.write_deadline <= self._server.now
        self.deadline = self.write_deadline = math.inf
        if slow_reader:
            _log.debug("ended the connection of a client at %s that does not read", self.holder)
            self._wire.abort()
            return
        _log.debug("ended the connection of a client at %s that sends nothing, or too slowly", self.holder)
        if not self._reader.requests and self._reader.in_head and not self._wire.closing:
            self._wire.write(response_writer.refusal(HTTPStatus.REQUEST_TIMEOUT, self._server.date))
        self._end_soon()

    def _go_on(self) -> None:
        """Answers the next request, or what is none, unless one is being answered."""
        if self._task is not None or self._wire.closing:
            return
        if self._reader.requests:
            self._answer(self._reader.requests[0])
        elif self._reader.refusal:
            self._wire.write(response_writer.refusal(self._reader.refusal, self._server.date))
            self._end_soon()

    def _answer(self, request: IncomingRequest) -> None:
        """Answers a request at once, or begins to."""
        try:
            reply = self._server.handler(request)
        except Exception:  # noqa: BLE001 - the chain answers its own errors; should it fail, the client hears of it
            reply = _no_answer(request)
        if not (isinstance(reply, Response) and self._sent_at_once(request, reply)):
            self.deadline = math.inf
            self._task = self._server.loop.create_task(self._answer_later(request, reply))

    def _sent_at_once(self, request: IncomingRequest, answer: Response) -> bool:
        keep_alive = self._keeps_alive(request)
        try:
            if not response_writer.send_at_once(
                answer, request, self._wire, date=self._server.date, keep_alive=keep_alive
            ):
                return False
        except Exception:  # noqa: BLE001 - one answer less must not end the others
            self._break_off(request)
        self._answered(keep_alive=keep_alive)
        return True

    async def _answer_later(self, request: IncomingRequest, reply: Reply) -> None:
        keep_alive = True
        try:
            answer = reply if isinstance(reply, Response) else await _awaited(request, reply)
            keep_alive, date = self._keeps_alive(request), self._server.date
            if not response_writer.send_at_once(answer, request, self._wire, date=date, keep_alive=keep_alive):
                await response_writer.send(answer, request, self._wire, date=date, keep_alive=keep_alive)
        except ClientGoneError:
            pass  # should it still be there, it hears what was wrong next
        except asyncio.CancelledError:
            self._wire.abort()  # or else the next answer would be taken for this one
            raise
        except Exception:  # noqa: BLE001 - one answer less must not end the others
            self._break_off(request)
        finally:
            self._task = None
            self._answered(keep_alive=keep_alive)

    def _keeps_alive(self, request: IncomingRequest) -> bool:
        """Whether another request may follow this one, which is answered."""
        return request.leaves_order() and request.keep_alive and not self._server.stopping

    def _break_off(self, request: IncomingRequest) -> None:
        """An answer cannot be sent, or not to its end."""
        _log.exception("the answer to %s %r broke off", request.method, request.path)
        self._wire.abort()

    def _answered(self, *, keep_alive: bool) -> None:
        """A request is done with: on to the next one, or to the end."""
        reader = self._reader
        reader.requests.popleft()
        if self._wire.lost:
            self._server.left(self)
            return
        if self._server.stopping:
            self._end_soon()
        elif not keep_alive:
            self._wire.close()
        reader.go_on()
        self.deadline = self._server.now + (IDLE_SECONDS if reader.between_messages else HEAD_SECONDS)
        if reader.requests or reader.refusal:  # sent ahead: others have their turn first
            self._server.loop.call_soon(self._go_on)

    def _expect_head(self) -> None:
        self.deadline = self._server.now + HEAD_SECONDS

    def _end_soon(self) -> None:
        """Closes it; TLS alone would wait half a minute for the client's goodbye, and read on meanwhile."""
        self._wire.close()
        self._server.loop.call_later(_GOODBYE, self._hang_up)

    def _hang_up(self) -> None:
        """Ends it unless an answer is still on its way to a client that reads slowly."""
        if self._wire.has_unsent:
            self._server.loop.call_later(_GOODBYE, self._hang_up)
        else:
            self._wire.abort()


async def _awaited(request: IncomingRequest, reply: Awaitable[Answer]) -> Answer:
    """The answer, whatever becomes of the request. Raises ClientGoneError."""
    try:
        return await reply
    except ClientGoneError:
        raise
    except Exception:  # noqa: BLE001 - as above
        return _no_answer(request)


def _no_answer(request: IncomingRequest) -> Response:
    """For an error that is handled just now."""
    _log.exception("no answer was made to %s %r", request.method, request.path)
    return text_response("Internal Server Error", status=500)
