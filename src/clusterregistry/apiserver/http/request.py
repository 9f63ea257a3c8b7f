"""A request as handlers and filters see it."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.endpoints.request_info import RequestInfo
from clusterregistry.apiserver.http.header_names import HeaderNames
from clusterregistry.apiserver.http.query import Query
from clusterregistry.apiserver.http.warnings_header import WarningRecorder
from clusterregistry.apiserver.registry.object_filter import EVERYTHING, Visible

BODY_LIMIT = 3 * 1024 * 1024
"""As kube-apiserver has it: a larger body is refused with 413."""

_NOT_READ_YET = RequestInfo(path="", verb="")


class ClientGoneError(Exception):
    """The client left before its request was complete: there is nobody to answer."""


class Receiver(Protocol):
    """Waits for bodies in a way of its own."""

    async def receive(self, request: Request) -> bytes:
        """The whole body, by ``read_whole``."""


class Request(abc.ABC):
    """One HTTP request. Filters fill in ``info``, ``user``, ``impersonator``, ``id`` and what the user may do.

    Where its body comes from, and how one learns that the client has left, is up to who made the connection.
    """

    # The values of the class until somebody sets others: to set all of them for each request costs as much as it does
    # to look at the request line.
    id = ""
    info = _NOT_READ_YET
    user: Any = None
    impersonator: Any = None
    """Who really asks, when they act as ``user``."""
    decision: Any = None
    """What authorization has decided; None before that."""
    received = 0.0
    """When it came, in seconds since 1970; only known where it is recorded."""
    on_body: Callable[[bytes], None] | None = None
    """Who else wants to see the body once it is read."""
    authorizer: Any = None
    seat: Receiver | None = None
    """Who waits for the body, when it is still to come; None: whoever asks for it."""
    has_come = True
    """Whether there is nothing more to come of the body."""
    visible: Visible = EVERYTHING
    warned: WarningRecorder | None = None
    """The warnings, once somebody has asked for them: few requests have any."""
    _query: Query | None = None

    def __init__(  # noqa: PLR0913 - the parts of a request, all by keyword
        self,
        *,
        method: str,
        path: str,
        query_string: bytes,
        headers: dict[str, str],
        repeated_headers: Sequence[tuple[str, str]] = (),
        client_address: str = "",
        client_certificates: tuple[bytes, ...] = (),
        abort: Callable[[], None] | None = None,
    ) -> None:
        """``headers`` are the first values by lower-case names, ``repeated_headers`` the further ones of some.

        Both have a character for each byte that came (latin-1).

        ``client_address`` is the IP address at the other end; ``abort`` ends the connection at once.
        """
        self.method = method
        self.path = path
        self.query_string = query_string
        self.client_address = client_address
        self.client_certificates = client_certificates
        self.abort = abort
        self._headers = headers
        self._repeated = repeated_headers

    def body_at_hand(self) -> bytes:
        """The whole body if it has come already, to be taken once. Empty when ``body`` has to be asked, which can wait.

        No more than BODY_LIMIT. Nearly every body comes with its head, and to wait for it would cost ten times as much.
        """
        return b""

    @abc.abstractmethod
    async def read_body(self) -> tuple[bytes, bool]:
        """The next piece of the body, and whether more may follow. Raises ClientGoneError."""

    @abc.abstractmethod
    async def disconnected(self) -> None:
        """Returns when the client has left. A body that was not read by then is dropped."""

    @property
    def query(self) -> Query:
        if self._query is None:
            self._query = Query(self.query_string)
        return self._query

    @property
    def warnings(self) -> WarningRecorder:
        if self.warned is None:
            self.warned = WarningRecorder()
        return self.warned

    def header(self, name: str) -> str:
        """The first value of a header, by its lower-case name; empty when it is absent."""
        return self._headers.get(name, "")

    def header_values(self, name: str) -> Sequence[str]:
        """All values of a header that may come several times, in their order."""
        if name not in self._headers:
            return ()
        return [self._headers[name], *(value for each, value in self._repeated if each == name)]

    def headers_beginning(self, prefix: str) -> Sequence[tuple[str, str]]:
        """All headers whose lower-case names begin so: what follows the prefix, and the value, in their order."""
        every = (*self._headers.items(), *self._repeated)
        return [(name[len(prefix) :], value) for name, value in every if name.startswith(prefix)]

    def mentions(self, headers: HeaderNames) -> bool:
        """Whether one of these headers is there at all."""
        return bool(headers.found_in(self._headers))

    def drop_headers(self, headers: HeaderNames) -> None:
        """Removes these headers: nobody further inwards is to see them."""
        found = headers.found_in(self._headers)
        for name in found:
            del self._headers[name]
        if found and self._repeated:
            self._repeated = [each for each in self._repeated if each[0] not in found]

    def has_header(self, name: str) -> bool:
        """Whether a header, by its lower-case name, is there at all."""
        return name in self._headers

    @property
    def declared_length(self) -> int | None:
        """That of the body, as its header has it; None without one."""
        declared = self.header("content-length")
        # Zeros count as digits, of which Python makes a number only up to some thousand.
        return int(declared.strip().lstrip("0") or "0") if declared else None

    async def body(self) -> bytes:
        """The whole body. Raises 413 above BODY_LIMIT, without reading further, and 429."""
        declared = self.declared_length
        if declared is not None and declared > BODY_LIMIT:
            raise errors.request_entity_too_large(f"limit is {BODY_LIMIT}")
        if self.seat is not None and not self.has_come:
            return await self.seat.receive(self)
        return await self.read_whole()

    async def read_whole(self, on_piece: Callable[[bytes], None] | None = None) -> bytes:
        """As ``body``; ``on_piece`` is told of each piece as it comes, and may raise."""
        pieces, size, more = [], 0, True
        while more:
            piece, more = await self.read_body()
            if on_piece is not None:
                on_piece(piece)
            pieces.append(piece)
            size += len(piece)
            if size > BODY_LIMIT:
                raise errors.request_entity_too_large(f"limit is {BODY_LIMIT}")
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self.on_body is not None:
            self.on_body(body)
        return body
