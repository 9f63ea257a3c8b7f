"""A request as handlers and filters see it."""

from __future__ import annotations

import abc
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.endpoints.request_info import RequestInfo
from clusterregistry.apiserver.http.query import Query
from clusterregistry.apiserver.registry.object_filter import EVERYTHING, ObjectFilter

_KEPT = 256
_LONGEST = 2048


class HeaderNames:
    """Some headers, by their lower-case names and by how lower-case names begin.

    Asked for each request, so it is remembered which of them are among the names that a request has: clients send the
    same ones again and again. What is remembered is bounded, since it is theirs to choose.
    """

    __slots__ = ("_beginnings", "_found", "_names")

    def __init__(self, names: Iterable[str], *, beginnings: Iterable[str] = ()) -> None:
        self._names = frozenset(names)
        self._beginnings = tuple(beginnings)
        self._found: dict[tuple[str, ...], frozenset[str]] = {}

    def found_in(self, headers: Iterable[str]) -> frozenset[str]:
        """Those that are there. Takes names, or what has them as keys."""
        given = tuple(headers)
        found = self._found.get(given)
        return self._look(given) if found is None else found

    def _look(self, given: tuple[str, ...]) -> frozenset[str]:
        begun = (name for name in given if name.startswith(self._beginnings))
        found = self._names.intersection(given).union(begun)
        if sum(map(len, given)) <= _LONGEST:
            if len(self._found) >= _KEPT:
                self._found.clear()
            self._found[given] = found
        return found


_TOTAL_LIMIT = 4 * 1024
_ITEM_LIMIT = 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class WarningRecorder:
    """Collects warnings, each once, and bounds what they add to an answer as kube-apiserver does.

    Above 4096 characters in all, each warning is cut to 256 and the ones that do not fit are left out.
    """

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[str, None] | None = None

    def add(self, text: str) -> None:
        if text:
            if self._texts is None:
                self._texts = {}
            self._texts[text] = None

    def taking_back(self) -> Callable[[], None]:
        """What takes back all that will be added from now on, whenever it is called."""
        before = self._texts and dict(self._texts)

        def take_back() -> None:
            self._texts = before and dict(before)

        return take_back

    def headers(self) -> list[tuple[bytes, bytes]]:
        if not self._texts:
            return []
        texts = list(self._texts)
        if sum(map(len, texts)) > _TOTAL_LIMIT:
            texts = _cut(texts)
        return [(b"warning", _header(text)) for text in texts]


def _cut(texts: list[str]) -> list[str]:
    kept, written = [], 0
    for text in texts:
        if written >= _TOTAL_LIMIT:
            break
        kept.append(text[:_ITEM_LIMIT])
        written += len(kept[-1])
    return kept


def _header(text: str) -> bytes:
    quoted = _CONTROL.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'.encode()


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
    visible: ObjectFilter = EVERYTHING
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

    def cached_body(self) -> bytes:
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
