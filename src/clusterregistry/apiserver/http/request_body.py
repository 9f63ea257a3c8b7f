"""A request that comes over a connection, its body piece by piece."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.apiserver.http.request import ClientGoneError, Request
from clusterregistry.apiserver.http.transport import ClientTransport

UNWANTED_LIMIT = 256 * 1024
"""As in Go's server: of a body that nobody wants, so much is read and dropped to keep the connection."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class IncomingRequest(Request):
    """A request whose head is there and whose body may still come."""

    keep_alive = True
    """Whether the client means to send more after it."""
    takes_chunks = True
    """Whether it knows answers in chunks."""
    broken = False
    """Whether the rest of the body is malformed."""
    _held = 0
    """How many bytes of the body the wire waits for: none of one that has come with its head."""
    _unwanted = False

    def __init__(  # noqa: PLR0913, PLR0917 - what a head says; by position, since keywords cost a dictionary
        self,
        wire: ClientTransport,
        method: str,
        path: str,
        query_string: bytes,
        headers: dict[str, str],
        repeated_headers: Sequence[tuple[str, str]],
        body: bytes | None = None,
    ) -> None:
        """``body`` is the whole one, if it has come with the head."""
        super().__init__(
            method=method,
            path=path,
            query_string=query_string,
            headers=headers,
            repeated_headers=repeated_headers,
            client_address=wire.address,
            client_certificates=wire.certificates,
            abort=wire.abort,
        )
        self.complete = body is not None
        self._wire = wire
        self._pieces = [body] if body else []

    def all_headers(self) -> tuple[dict[str, str], Sequence[tuple[str, str]]]:
        """The first values as they are now, a copy, and the further ones."""
        return self._headers.copy(), self._repeated

    def add(self, piece: bytes) -> None:
        """A piece of the body has come."""
        if not self._unwanted:
            self._pieces.append(piece)
            self._held += len(piece)
            self._wire.hold(len(piece))
            self._wire.changed()

    def end(self) -> None:
        """The body is complete."""
        self.complete = True
        self._wire.changed()

    def break_off(self) -> None:
        """What comes is no body."""
        self.broken = True
        self._wire.changed()

    def cached_body(self) -> bytes:
        pieces = self._pieces
        # One piece is never more than is read from a client at once, which is far below the limit.
        if len(pieces) != 1 or not self.complete or self._wire.lost:
            return b""
        body = pieces.pop()
        if self._held:
            self._release()
        if self.on_body is not None:
            self.on_body(body)
        return body

    async def read_body(self) -> tuple[bytes, bool]:
        wire = self._wire
        if not self._pieces and not self.complete and self._expects_continue:
            del self._headers["expect"]  # it need not be told again, and is going to send all of it
            wire.write(_CONTINUE)
        while not (self._pieces or self.complete or self.broken or wire.lost):
            await wire.change()
        if wire.lost or self.broken:
            raise ClientGoneError
        return self._taken(), not self.complete

    async def disconnected(self) -> None:
        self.drop_body()  # or else the client would be paused, and its leaving not be noticed
        while not self._wire.lost:
            await self._wire.change()

    def drop_body(self) -> None:
        """Nobody will read the body, or what is left of it."""
        self._unwanted = True
        if self._pieces:
            self._taken()

    @property
    def has_come(self) -> bool:  # type: ignore[override]
        """As the request says: all of the body is here, or nothing more will come."""
        return self.complete or self.broken or self._wire.lost

    @property
    def announces_body(self) -> bool:
        """Whether its head says that a body follows."""
        return bool(self.declared_length) or bool(self.header("transfer-encoding"))

    def leaves_order(self) -> bool:
        """Whether another request can follow this one, of whose body nobody wants any more.

        Not when much of a body is left, nor when the client may or may not send one.
        """
        if self.complete and not self._pieces:
            return True
        self.drop_body()
        if self.complete:
            return True
        length = self.declared_length
        return not self.broken and not self._expects_continue and length is not None and length <= UNWANTED_LIMIT

    @property
    def _expects_continue(self) -> bool:
        """Whether the client waits to be told that its body is wanted. HTTP/1.0 knows neither that nor chunks."""
        return self.takes_chunks and self.header("expect").lower() == "100-continue"

    def _taken(self) -> bytes:
        if not self._pieces:
            return b""
        pieces, self._pieces = self._pieces, []
        taken = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._release()
        return taken

    def _release(self) -> None:
        held, self._held = self._held, 0
        self._wire.release(held)
