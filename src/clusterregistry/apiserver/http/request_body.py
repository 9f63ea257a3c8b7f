"""A request received over a connection, its body piece by piece."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.apiserver.http.request import ClientGoneError, HttpRequest
from clusterregistry.apiserver.http.transport import ClientTransport

DISCARD_LIMIT = 256 * 1024
"""As in Go's server: of a body that no handler reads, so many bytes are dropped to keep the connection."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class IncomingRequest(HttpRequest):
    """A request whose head was received and whose body may still arrive."""

    keep_alive = True
    """Whether the client may send another request after this one."""
    takes_chunks = True
    """Whether the client understands chunked responses."""
    is_broken = False
    """Whether the rest of the body is malformed."""
    _held = 0
    """Bytes of the body that the transport counts as held: none of a body that arrived with its head."""
    _is_discarded = False

    def __init__(  # noqa: PLR0913, PLR0917 - what a head says; by position, since keywords cost a dictionary
        self,
        transport: ClientTransport,
        method: str,
        path: str,
        query_string: bytes,
        headers: dict[str, str],
        repeated_headers: Sequence[tuple[str, str]],
        body: bytes | None = None,
    ) -> None:
        """``body`` is the whole body, if it arrived with the head."""
        super().__init__(
            method=method,
            path=path,
            query_string=query_string,
            headers=headers,
            repeated_headers=repeated_headers,
            client_address=transport.address,
            client_certificates=transport.certificates,
            abort=transport.abort,
        )
        self.is_complete = body is not None
        self._transport = transport
        self._pieces = [body] if body else []

    def all_headers(self) -> tuple[dict[str, str], Sequence[tuple[str, str]]]:
        """A copy of the first values, and the further values."""
        return self.headers.copy(), self._repeated

    def add(self, piece: bytes) -> None:
        """Adds a received piece of the body."""
        if not self._is_discarded:
            self._pieces.append(piece)
            self._held += len(piece)
            self._transport.hold(len(piece))
            self._transport.notify()

    def end(self) -> None:
        """Marks the body as complete."""
        self.is_complete = True
        self._transport.notify()

    def break_off(self) -> None:
        """Marks the rest of the body as malformed."""
        self.is_broken = True
        self._transport.notify()

    def take_buffered_body(self) -> bytes:
        pieces = self._pieces
        # One piece is never more than one read from the client, which is far below BODY_LIMIT.
        if len(pieces) != 1 or not self.is_complete or self._transport.is_lost:
            return b""
        body = pieces.pop()
        if self._held:
            self._release()
        if self.body_observer is not None:
            self.body_observer(body)
        return body

    async def read_body(self) -> tuple[bytes, bool]:
        transport = self._transport
        if not self._pieces and not self.is_complete and self._expects_continue:
            del self.headers["expect"]  # the interim response is sent once
            transport.write(_CONTINUE)
        while not (self._pieces or self.is_complete or self.is_broken or transport.is_lost):
            await transport.change()
        if transport.is_lost or self.is_broken:
            raise ClientGoneError
        return self._take(), not self.is_complete

    async def disconnected(self) -> None:
        self.discard_body()  # otherwise reading might be paused, and the end of the connection not be noticed
        while not self._transport.is_lost:
            await self._transport.change()

    def discard_body(self) -> None:
        """Drops the body, or what is left of it."""
        self._is_discarded = True
        if self._pieces:
            self._take()

    @property
    def awaits_body(self) -> bool:  # type: ignore[override]
        return not (self.is_complete or self.is_broken or self._transport.is_lost)

    @property
    def announces_body(self) -> bool:
        """Whether the head says that a body follows."""
        return bool(self.declared_length) or bool(self.header("transfer-encoding"))

    @property
    def asks_for_websocket(self) -> bool:
        """Whether the client asks to switch to a WebSocket. It should say nothing before it has an answer."""
        return self.header("upgrade").lower() == "websocket"

    def allows_next_request(self) -> bool:
        """Discards the rest of the body and says whether another request can follow on the connection.

        No request can follow when much of the body is left, nor when the client may or may not send the body.
        """
        if self.is_complete and not self._pieces:
            return True
        self.discard_body()
        if self.is_complete:
            return True
        length = self.declared_length
        return not self.is_broken and not self._expects_continue and length is not None and length <= DISCARD_LIMIT

    @property
    def _expects_continue(self) -> bool:
        """Whether the client waits for ``100 Continue``. HTTP/1.0 knows neither that nor chunks."""
        return self.takes_chunks and self.header("expect").lower() == "100-continue"

    def _take(self) -> bytes:
        if not self._pieces:
            return b""
        pieces, self._pieces = self._pieces, []
        taken = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._release()
        return taken

    def _release(self) -> None:
        held, self._held = self._held, 0
        self._transport.release(held)
