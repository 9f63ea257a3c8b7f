"""A request: its method, path, query, headers and body, and the client that sent it."""

from __future__ import annotations

import abc
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from urllib.parse import parse_qsl

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes of a body, as in kube-apiserver."""


class ClientGoneError(Exception):
    """The client disconnected before its request was complete: no response can be sent."""


class BodyTooLargeError(Exception):
    """The body is larger than BODY_LIMIT."""


class HttpRequest(abc.ABC):
    """One HTTP request. A subclass knows where the body comes from and when the client has disconnected."""

    # Class attributes are the defaults: to set each of them for every request costs as much as the request line.
    awaits_body = False
    """Whether more of the body may still arrive."""
    body_observer: Callable[[bytes], None] | None = None
    """Called with the whole body once it is read."""
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
        """``headers`` are the first values by lower-case names, ``repeated_headers`` the further values.

        Both have one character for each byte received (latin-1). ``client_address`` is the client's IP address;
        ``abort`` ends the connection at once.
        """
        self.method = method
        self.path = path
        self.query_string = query_string
        self.client_address = client_address
        self.client_certificates = client_certificates
        self.abort = abort
        self.headers = headers
        self._repeated = repeated_headers

    @abc.abstractmethod
    async def read_body(self) -> tuple[bytes, bool]:
        """The next piece of the body, and whether more may follow. Raises ClientGoneError."""

    @abc.abstractmethod
    async def disconnected(self) -> None:
        """Returns when the client has disconnected. Drops a body that was not read by then."""

    def take_buffered_body(self) -> bytes:
        """The whole body if it was received already, to be taken once; empty if ``body`` has to be awaited.

        Nearly every body arrives with its head, and to await it would cost ten times as much. No more than BODY_LIMIT.
        """
        return b""

    async def body(self) -> bytes:
        """The whole body. Raises BodyTooLargeError and ClientGoneError."""
        return await self.read_whole()

    async def read_whole(self, on_piece: Callable[[bytes], None] | None = None) -> bytes:
        """Reads the whole body. ``on_piece`` is called with each piece as it arrives, and may raise.

        Raises BodyTooLargeError, without reading further, and ClientGoneError.
        """
        if (self.declared_length or 0) > BODY_LIMIT:
            raise BodyTooLargeError
        pieces, size, more = [], 0, True
        while more:
            piece, more = await self.read_body()
            if on_piece is not None:
                on_piece(piece)
            pieces.append(piece)
            size += len(piece)
            if size > BODY_LIMIT:
                raise BodyTooLargeError
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self.body_observer is not None:
            self.body_observer(body)
        return body

    @property
    def declared_length(self) -> int | None:
        """The value of Content-Length; None without that header."""
        declared = self.header("content-length")
        # Leading zeros count as digits, and int() refuses more than some thousand digits.
        return int(declared.strip().lstrip("0") or "0") if declared else None

    @property
    def query(self) -> Query:
        if self._query is None:
            self._query = Query(self.query_string)
        return self._query

    def header(self, name: str) -> str:
        """The first value of a header, by its lower-case name; empty if the header is absent."""
        return self.headers.get(name, "")

    def header_values(self, name: str) -> Sequence[str]:
        """All values of a header that may be repeated, in their order."""
        if name not in self.headers:
            return ()
        return [self.headers[name], *(value for each, value in self._repeated if each == name)]

    def headers_beginning(self, prefix: str) -> Sequence[tuple[str, str]]:
        """The headers whose lower-case names have a prefix: the name without the prefix and the value, in order."""
        every = (*self.headers.items(), *self._repeated)
        return [(name[len(prefix) :], value) for name, value in every if name.startswith(prefix)]

    def has_any_header(self, headers: HeaderNames) -> bool:
        """Whether one of these headers is present."""
        return bool(headers.found_in(self.headers))

    def drop_headers(self, headers: HeaderNames) -> None:
        """Removes these headers, so that no later filter or handler can read them."""
        found = headers.found_in(self.headers)
        for name in found:
            del self.headers[name]
        if found and self._repeated:
            self._repeated = [each for each in self._repeated if each[0] not in found]


class HeaderNames:
    """A set of header names, given by lower-case names and by prefixes of lower-case names.

    Which names of a request are in the set is cached: clients send the same names again and again. The cache is
    bounded, since clients choose the names.
    """

    __slots__ = ("_found", "_names", "_prefixes")

    _CACHED_SETS = 256
    _CACHED_CHARACTERS = 2048

    def __init__(self, names: Iterable[str], *, prefixes: Iterable[str] = ()) -> None:
        self._names = frozenset(names)
        self._prefixes = tuple(prefixes)
        self._found: dict[tuple[str, ...], frozenset[str]] = {}

    def found_in(self, headers: Iterable[str]) -> frozenset[str]:
        """The names of a request's headers that are in the set."""
        given = tuple(headers)
        found = self._found.get(given)
        return self._find(given) if found is None else found

    def _find(self, given: tuple[str, ...]) -> frozenset[str]:
        prefixed = (name for name in given if name.startswith(self._prefixes))
        found = self._names.intersection(given).union(prefixed)
        if sum(map(len, given)) <= self._CACHED_CHARACTERS:
            if len(self._found) >= self._CACHED_SETS:
                self._found.clear()
            self._found[given] = found
        return found


class Query:
    """A parsed query string. All code reads this one result: what was authorized is what is then done.

    Of repeated parameters the first counts, as in kube-apiserver.
    """

    __slots__ = ("_values",)

    def __init__(self, query_string: bytes) -> None:
        cacheable = len(query_string) <= _CACHED_QUERY_BYTES
        self._values = (_parse_query_cached if cacheable else _parse_query)(query_string)

    def first(self, name: str, default: str = "") -> str:
        values = self._values.get(name)
        return values[0] if values else default

    def all(self, name: str) -> Sequence[str]:
        return self._values.get(name, ())

    def __bool__(self) -> bool:
        """Whether there is any parameter."""
        return bool(self._values)

    def __contains__(self, name: str) -> bool:
        return name in self._values


_CACHED_QUERY_BYTES = 256
"""Longer query strings are parsed each time: any client can send them."""

_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


def _parse_query(query_string: bytes) -> Mapping[str, Sequence[str]]:
    """As Go parses a query: a pair with a semicolon or with a broken escape is left out."""
    values: dict[str, list[str]] = {}
    text = query_string.decode("utf-8", "replace")
    if ";" in text or "%" in text:
        text = "&".join(part for part in text.split("&") if ";" not in part and not _BROKEN_ESCAPE.search(part))
    for name, value in parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="replace"):
        values.setdefault(name, []).append(value)
    return values


_parse_query_cached = lru_cache(1024)(_parse_query)
"""Most requests have the same few queries, such as the name of a field manager."""
