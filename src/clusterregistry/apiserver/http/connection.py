"""One connection: its requests are answered one after the other, in the order in which they arrived.

A response that is known at once is written at once. A task is made only for a request that has to wait: for its
response, its body or its client.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import math
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Generic, Protocol

from clusterregistry.apiserver.http import response_writer
from clusterregistry.apiserver.http.parser import R, RequestParser
from clusterregistry.apiserver.http.request import ClientGoneError
from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import Answer, Reply, Response, WebSocketResponse, text_response
from clusterregistry.apiserver.http.transport import ClientTransport

HEAD_SECONDS = 32.0
"""How long a client may take for the head of a request, as in kube-apiserver."""

IDLE_SECONDS = 620.0
"""More than the ten minutes after which common load balancers drop an idle connection themselves."""

WRITE_SECONDS = 60.0
"""How long a client that does not read may keep a response, or the events of a watch, in our memory."""

_CLOSE_SECONDS = 0.5
"""How long a client may take for its part of closing TLS."""

_log = logging.getLogger(__name__)


class ServerContext(Protocol[R]):
    """What a connection needs of its server."""

    loop: asyncio.AbstractEventLoop
    """Kept here: asyncio.get_running_loop is a system call before Python 3.12."""
    request_class: type[R]
    handler: Callable[[R], Reply]
    is_stopping: bool
    now: float
    """The loop's time, to the second."""
    date: bytes
    """The Date header."""
    buffer: memoryview
    """Where received bytes are put, until they are parsed in the same turn of the loop."""

    def add(self, connection: Connection[R]) -> None: ...

    def remove(self, connection: Connection[R]) -> None:
        """The connection has ended, and so has all work for it."""


class Connection(asyncio.BufferedProtocol, Generic[R]):
    """Connects a transport with the handler.

    It has a buffer for received bytes: without one uvloop takes 256 KB from the system for whatever is read over TLS,
    and gives it back, which is a quarter of what a GET costs.
    """

    __slots__ = ("_parser", "_server", "_task", "_transport", "deadline", "holder", "is_connected", "write_deadline")

    _parser: RequestParser[R]
    _transport: ClientTransport

    def __init__(self, server: ServerContext[R], holder: str = "") -> None:
        self._server = server
        self._task: asyncio.Task[None] | None = None
        """The task of the request that is being answered."""
        self.holder = holder
        """The key under which the connection is counted."""
        self.is_connected = False
        """Whether the handshake is over."""
        self.deadline = math.inf
        """Read deadline, in loop time."""
        self.write_deadline = math.inf
        """Deadline for the client to read, in loop time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.is_connected = True
        self._transport = ClientTransport(transport)
        self._parser = RequestParser(self._transport, self._server.request_class)
        self._expect_head()
        self._server.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the reason does not matter
        self._transport.on_lost()
        self._parser.close()
        if self._task is None:
            self._server.remove(self)

    def pause_writing(self) -> None:
        self._transport.on_pause_writing()
        self.write_deadline = self._server.now + WRITE_SECONDS

    def resume_writing(self) -> None:
        self.write_deadline = math.inf
        self._transport.on_resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - there is only one
        return self._server.buffer

    def buffer_updated(self, nbytes: int) -> None:
        parser = self._parser
        was_in_head, was_between_messages = parser.in_head, parser.between_messages
        parser.feed(bytes(self._server.buffer[:nbytes]))
        if parser.requests or parser.refusal:
            # In the loop's next turn: with many clients it is cheaper to read from all, and then to answer all.
            self._server.loop.call_soon(self._answer_next)
        elif parser.in_head and not was_in_head:
            self._expect_head()
        elif parser.between_messages and not was_between_messages:  # the end of a discarded body
            self.deadline = self._server.now + IDLE_SECONDS

    def finish(self) -> None:
        """Closes an idle connection; a request in progress is still answered."""
        if not self._parser.requests:
            self._close_soon()

    def abort(self) -> None:
        """Ends the connection and its request at once."""
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()

    def expire(self) -> None:
        """Ends the connection because one of its deadlines has passed."""
        slow_reader = self.write_deadline <= self._server.now
        self.deadline = self.write_deadline = math.inf
        if slow_reader:
            _log.debug("closed the connection of a client at %s that does not read", self.holder)
            self._transport.abort()
            return
        _log.debug("closed the connection of a client at %s that sends nothing, or too slowly", self.holder)
        if not self._parser.requests and self._parser.in_head and not self._transport.is_closing:
            self._transport.write(response_writer.refusal(HTTPStatus.REQUEST_TIMEOUT, self._server.date))
        self._close_soon()

    def _answer_next(self) -> None:
        """Answers the next request, or malformed input, unless a request is being answered."""
        if self._task is not None or self._transport.is_closing:
            return
        if self._parser.requests:
            self._answer(self._parser.requests[0])
        elif self._parser.refusal:
            self._transport.write(response_writer.refusal(self._parser.refusal, self._server.date))
            self._close_soon()

    def _answer(self, request: R) -> None:
        """Answers a request at once, or starts its task."""
        try:
            reply = self._server.handler(request)
        except Exception:  # noqa: BLE001 - the handler answers its own errors; if it fails, the client gets a 500
            reply = _internal_error(request)
        if not (isinstance(reply, Response) and self._sent_at_once(request, reply)):
            self.deadline = math.inf
            self._task = self._server.loop.create_task(self._answer_later(request, reply))

    def _sent_at_once(self, request: R, answer: Response) -> bool:
        keep_alive = self._keeps_alive(request)
        try:
            if not response_writer.send_at_once(
                answer, request, self._transport, date=self._server.date, keep_alive=keep_alive
            ):
                return False
        except Exception:  # noqa: BLE001 - one failed response must not end the others
            self._abort_response(request)
        self._done(keep_alive=keep_alive)
        return True

    async def _answer_later(self, request: R, reply: Reply) -> None:
        keep_alive = True
        try:
            answer = reply if isinstance(reply, Response) else await _awaited(request, reply)
            keep_alive, date = self._keeps_alive(request), self._server.date
            if not response_writer.send_at_once(answer, request, self._transport, date=date, keep_alive=keep_alive):
                if isinstance(answer, WebSocketResponse):
                    keep_alive = False
                    await self._serve_websocket(answer)
                    return
                await response_writer.send(answer, request, self._transport, date=date, keep_alive=keep_alive)
        except ClientGoneError:
            pass  # a client that is still connected gets the parser's refusal next
        except asyncio.CancelledError:
            self._transport.abort()  # otherwise the next response would be taken for this one
            raise
        except Exception:  # noqa: BLE001 - one failed response must not end the others
            self._abort_response(request)
        finally:
            self._task = None
            self._done(keep_alive=keep_alive)

    async def _serve_websocket(self, answer: WebSocketResponse) -> None:
        """Switches protocols and sends the stream, with which the connection ends."""
        # Imported in a thread, since the first time takes 35 ms, and other requests do not wait for it.
        module = await asyncio.to_thread(importlib.import_module, "clusterregistry.apiserver.http.websocket")
        websocket = module.WebSocket(self._transport, self._close_soon, is_binary=answer.is_binary)
        await self._transport.drain()
        self._transport.write(response_writer.switch_head(answer, self._server.date))
        if not self._transport.is_lost:
            self._parser.switch(websocket.receive)
        await answer.stream(websocket)
        await websocket.end()

    def _keeps_alive(self, request: R) -> bool:
        """Whether another request may follow this one, which has its response."""
        return request.allows_next_request() and request.keep_alive and not self._server.is_stopping

    def _abort_response(self, request: R) -> None:
        """Logs a response that cannot be sent, or not to its end, and aborts the connection."""
        _log.exception("sending the response to %s %r failed", request.method, request.path)
        self._transport.abort()

    def _done(self, *, keep_alive: bool) -> None:
        """Removes the answered request, and goes on with the next one or closes the connection."""
        parser = self._parser
        parser.requests.popleft()
        if self._transport.is_lost:
            self._server.remove(self)
            return
        if self._server.is_stopping:
            self._close_soon()
        elif not keep_alive:
            self._transport.close()
        parser.resume()
        self.deadline = self._server.now + (IDLE_SECONDS if parser.between_messages else HEAD_SECONDS)
        if parser.requests or parser.refusal:  # pipelined: other connections have their turn first
            self._server.loop.call_soon(self._answer_next)

    def _expect_head(self) -> None:
        self.deadline = self._server.now + HEAD_SECONDS

    def _close_soon(self) -> None:
        """Closes the connection; TLS alone would wait half a minute for the client's part, and read on meanwhile."""
        self._transport.close()
        self._server.loop.call_later(_CLOSE_SECONDS, self._abort_when_sent)

    def _abort_when_sent(self) -> None:
        """Aborts the connection once a client that reads slowly has its response."""
        if self._transport.has_unsent:
            self._server.loop.call_later(_CLOSE_SECONDS, self._abort_when_sent)
        else:
            self._transport.abort()


async def _awaited(request: IncomingRequest, reply: Awaitable[Answer]) -> Answer:
    """The response; a 500 if the handler fails. Raises ClientGoneError."""
    try:
        return await reply
    except ClientGoneError:
        raise
    except Exception:  # noqa: BLE001 - as above
        return _internal_error(request)


def _internal_error(request: IncomingRequest) -> Response:
    """Logs the exception that is being handled."""
    _log.exception("the handler of %s %r failed", request.method, request.path)
    return text_response("Internal Server Error", status=500)
