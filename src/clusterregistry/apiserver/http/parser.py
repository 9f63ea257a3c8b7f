"""Parses the bytes of a connection into requests, in whatever pieces they arrive.

No client can make the parser raise or keep much. Heads and trailers are bounded in size, and bytes behind a request
that is still being answered are hardly parsed. Trailers never count as headers: filters that check headers have not
seen them.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Generic, TypeVar
from urllib.parse import unquote

import httptools

from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.transport import ClientTransport

Headers = dict[str, str]
RepeatedHeaders = Sequence[tuple[str, str]]

HEADERS_LIMIT = 1024 * 1024
"""Bytes of URL and headers together, approximately, as in Go's server."""

URL_LIMIT = 64 * 1024
"""Bytes of path and query, approximately: they are parsed before the user is known."""

HEADERS_COUNT = 2000
"""Headers of one request, approximately; a proxy that names a user's groups may send a thousand. Each is an object."""

_SLICE = 4096
"""Bytes that are parsed at a time. This bounds how many pipelined requests become objects while one is answered."""

_SERVED_METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ", b"OPTIONS ")
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) /")
_STAND_IN = b"PROPFIND"  # any method that httptools knows and the server does not serve

_log = logging.getLogger(__name__)

R = TypeVar("R", bound=IncomingRequest)


class RequestParser(Generic[R]):
    """Parses one request after the other. httptools calls the ``on_`` methods."""

    __slots__ = (
        "_count",
        "_current",
        "_head_cache",
        "_headers",
        "_held",
        "_ignores_input",
        "_method",
        "_parser",
        "_receiver",
        "_repeated",
        "_request_class",
        "_transport",
        "_unparsed",
        "_url",
        "between_messages",
        "in_head",
        "refusal",
        "requests",
    )

    def __init__(self, transport: ClientTransport, request_class: type[R]) -> None:
        self.requests: deque[R] = deque()
        """The requests to answer, in their order. The caller removes a request once it is answered."""
        self.refusal: HTTPStatus | None = None
        """The status to respond with after the requests, when malformed input arrived."""
        self.in_head = False
        self.between_messages = True
        """Whether the last request is complete, its body included."""
        self._transport = transport
        self._request_class = request_class
        self._parser = httptools.HttpRequestParser(self)
        self._head_cache = HeadCache(request_class)
        self._count = 0
        self._current: R | None = None
        self._ignores_input = False
        self._headers: Headers = {}
        self._held = bytearray()
        self._method = ""
        self._receiver: Callable[[bytes], None] | None = None
        """Takes the bytes behind a request that has switched to another protocol."""
        self._repeated: list[tuple[str, str]] = []
        self._unparsed = 0
        self._url = b""

    def feed(self, data: bytes) -> None:
        """Parses received bytes. Never raises: malformed input ends in a ``refusal``."""
        if self._ignores_input:
            self._take_unparsed(data)
        elif len(self.requests) > 1:
            self._hold(data)
        elif self.between_messages:
            self._parse_request(data)
        else:
            self._parse_all(data)

    def resume(self) -> None:
        """Parses the bytes that were held back while the last request was answered."""
        if self._held and not self._ignores_input:
            self.feed(self._released())

    def switch(self, receiver: Callable[[bytes], None]) -> None:
        """Gives all bytes behind the last request, which asked for another protocol, to the reader of that protocol."""
        self._receiver = receiver
        if self._held:
            receiver(self._released())

    def close(self) -> None:
        """Ignores all further input."""
        self._ignores_input, self._receiver = True, None
        del self._parser  # it refers to this object: a cycle that would wait for the collector

    def _hold(self, data: bytes) -> None:
        self._held += data
        self._transport.hold(len(data))

    def _released(self) -> bytes:
        held, self._held = bytes(self._held), bytearray()
        self._transport.release(len(held))
        return held

    def _take_unparsed(self, data: bytes) -> None:
        """Takes bytes that are no HTTP: they are dropped, unless the last request asked for a WebSocket."""
        if self._receiver is not None:
            self._receiver(data)
        elif data and self.refusal is None and self.requests and self.requests[-1].asks_for_websocket:
            self._hold(data)

    def _parse_request(self, data: bytes) -> None:
        """Parses bytes that begin with a request. A request with a cached head skips httptools."""
        request = self._head_cache.parse(data, self._transport)
        if request is not None:
            self._unparsed = 0
            self.requests.append(request)
            return
        before = len(self.requests)
        self._parse_all(data)
        if self.between_messages and len(self.requests) == before + 1:
            self._head_cache.add(data, self.requests[-1])

    def _parse_all(self, data: bytes) -> None:
        if len(data) <= _SLICE:
            self._parse(data)
        else:
            self._parse_slices(data)

    def _parse_slices(self, data: bytes) -> None:
        for start in range(0, len(data), _SLICE):
            if len(self.requests) > 1:
                self._hold(data[start:])
                return
            if self._ignores_input:
                self._take_unparsed(data[start:])
                return
            self._parse(data[start : start + _SLICE])

    def _parse(self, data: bytes) -> None:
        if self.between_messages and not data.startswith(_SERVED_METHODS):
            data = self._with_known_method(data)
        self._unparsed += len(data)
        if self._unparsed > HEADERS_LIMIT or self._count > HEADERS_COUNT:
            # httptools keeps all of a head, or of the trailers of a body: both need a bound.
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head or the trailers are too large")
            return
        if self.in_head and len(self._url) > URL_LIMIT:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG, "the URL is too long")
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._stop_parsing(self.requests[-1])
            self._take_unparsed(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            why = error.__context__  # the exception of an ``on_`` method
            status = why.status if isinstance(why, HeadRefusedError) else HTTPStatus.BAD_REQUEST
            self._refuse(status, str(why or error))

    def _stop_parsing(self, request: R) -> None:
        """Ends HTTP behind a request to switch protocols, be it granted or not. A body is lost: it has no length."""
        self._ignores_input = True
        if request.announces_body:
            request.is_complete, self._current = False, request
            self._refuse(HTTPStatus.BAD_REQUEST, "a body behind a request for another protocol")

    def _with_known_method(self, data: bytes) -> bytes:
        """Replaces a method that httptools would refuse: the handler is to respond to it."""
        start = _REQUEST_LINE.match(data)
        if start is None:
            return data
        self._method = start[1].decode()
        return _STAND_IN + data[start.end(1) :]

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        _log.debug("refused the input of a client: %s", why)
        self._ignores_input = True
        self.refusal = status
        if self._current is not None:
            self._current.break_off()

    def on_message_begin(self) -> None:
        self.between_messages = False
        self.in_head = True
        self._url = b""
        self._headers = {}
        self._repeated = []

    def on_url(self, part: bytes) -> None:
        self._url += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count += 1
        if self.in_head:
            # httptools leaves trailing spaces and tabs, which are no part of the value.
            key, text = name.lower().decode("latin-1"), value.rstrip(b" \t").decode("latin-1")
            if key in self._headers:
                self._repeated.append((key, text))
            else:
                self._headers[key] = text

    def on_headers_complete(self) -> None:
        self.in_head = False
        self._unparsed = self._count = 0
        parser = self._parser
        version = parser.get_http_version()
        check_head(version, self._headers, self._repeated)
        method, self._method = self._method or parser.get_method().decode(), ""
        keep_alive = parser.should_keep_alive()
        path, query_string = _split(self._url)
        request = self._current = self._request_class(
            self._transport, method, path, query_string, self._headers, self._repeated
        )
        self.requests.append(request)
        if version == "1.0":
            request.keep_alive = request.takes_chunks = False
        elif not keep_alive or parser.should_upgrade():
            request.keep_alive = False
        if not keep_alive:
            self._head_cache.clear()

    def on_body(self, piece: bytes) -> None:
        self._unparsed = 0
        if self._current is not None:
            self._current.add(piece)

    def on_message_complete(self) -> None:
        self.between_messages = True
        self._unparsed = self._count = 0
        if self._current is not None:
            self._current.end()
            self._current = None


def _split(url: bytes) -> tuple[str, bytes]:
    """The path, unquoted, and the query. httptools turns exceptions into its own error."""
    if url.startswith(b"/") and url.find(b"#") < 0:  # ``in`` costs six times as much for bytes
        raw_path, _, query_string = url.partition(b"?")
    else:
        parsed = httptools.parse_url(url)
        raw_path, query_string = parsed.path, parsed.query or b""
    return _unquote(raw_path), query_string


def _unquote(path: bytes) -> str:
    text = path.decode("ascii")
    return unquote(text) if "%" in text else text


class HeadRefusedError(Exception):
    """A head that the server does not accept, and the status to respond with."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


_VERSIONS = frozenset(("1.0", "1.1"))
_HOST = re.compile(r"[A-Za-z0-9!$%&()*+,.:;=@\[\]'_~-]*")
"""As Go's ``httpguts.ValidHostHeader``: the characters of a name, an address and a port; may be empty."""


def check_head(version: str, headers: Headers, repeated: RepeatedHeaders) -> None:
    """Validates what httptools does not. ``headers`` are the first values by name, ``repeated`` the further ones.

    Raises HeadRefusedError.
    """
    if version not in _VERSIONS:
        raise HeadRefusedError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, f"HTTP/{version}")
    _check_host(version, headers.get("host"))
    if "transfer-encoding" in headers:
        _check_encoding(version, headers["transfer-encoding"])
    if "expect" in headers:
        _check_expectation(headers["expect"])
    for name, value in repeated:
        match name:
            case "host":
                raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "more than one Host")
            case "transfer-encoding":
                raise HeadRefusedError(HTTPStatus.NOT_IMPLEMENTED, "more than one encoding")
            case "expect":
                _check_expectation(value)


def _check_host(version: str, host: str | None) -> None:
    if host is None:
        if version != "1.0":
            raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "no Host")
    elif not _HOST.fullmatch(host):
        raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "an invalid Host")


def _check_encoding(version: str, encoding: str) -> None:
    """Httptools accepts any encoding that ends with chunks, and would return a body that is still encoded."""
    if version == "1.0":
        raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "a transfer encoding in HTTP/1.0")
    if encoding.lower() != "chunked":
        raise HeadRefusedError(HTTPStatus.NOT_IMPLEMENTED, "an encoding other than chunked")


def _check_expectation(expected: str) -> None:
    if expected and expected.lower() != "100-continue":
        raise HeadRefusedError(HTTPStatus.EXPECTATION_FAILED, "an expectation other than 100-continue")


_PLAIN = rb"A-Za-z0-9/&=%._~:,@+-"
_PLAIN_LINE = re.compile(
    rb"(GET|POST|PUT|PATCH|DELETE) (/[%b]{0,1024})(?:\?([?%b]{0,1024}))? HTTP/1\.1" % (_PLAIN, _PLAIN)
)
_HEADER_LINES = re.compile(rb"(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*)*")
_LENGTH_LINE = re.compile(rb"\r\ncontent-length: ?([0-9]{1,6})(?=\r\n|\Z)", re.IGNORECASE)
_END = b"\r\n\r\n"
_STATEFUL_HEADERS = frozenset(("transfer-encoding", "expect", "upgrade", "connection", "proxy-connection"))
"""Headers that change how httptools treats the request."""

_CACHED_BYTES = 4096
"""Bytes of header lines that are cached: each connection has its own cache, for each method."""

_MAX_MISSES = 16
"""Heads of one connection that are cached without a hit: some clients number their requests in a header."""


class HeadCache(Generic[R]):
    """The head of one connection's last request of each method, as httptools parsed it.

    Clients repeat their headers: to compare the bytes is cheaper than to parse them.
    """

    __slots__ = ("_heads", "_misses", "_request_class")

    def __init__(self, request_class: type[R]) -> None:
        self._request_class = request_class
        self._heads: dict[bytes, _Head] = {}
        """By method."""
        self._misses = 0
        """Heads added since the last hit."""

    def parse(self, data: bytes, transport: ClientTransport) -> R | None:
        """The request, if the data are exactly one whole request with cached headers."""
        lines, end, body = data.partition(_END)
        line = _PLAIN_LINE.match(lines)
        if line is None or not end:
            return None
        method, path, query_string = line.groups(b"")
        head = self._heads.get(method)
        if head is None or not head.matches(lines[line.end() :], body):
            return None
        self._misses = 0
        headers = head.headers.copy()  # filters may drop headers
        if head.has_length:
            headers["content-length"] = str(len(body))
        return self._request_class(transport, head.method, _unquote(path), query_string, headers, head.repeated, body)

    def add(self, data: bytes, request: R) -> None:
        """Caches the head of a request that httptools made of exactly these data."""
        if self._misses >= _MAX_MISSES:
            return
        line = _PLAIN_LINE.match(data)
        head = _cacheable_head(data[line.end() : data.find(_END)], request) if line else None
        if line and head:
            self._heads[line[1]] = head
            self._misses += 1
        if self._misses >= _MAX_MISSES:
            self.clear()

    def clear(self) -> None:
        self._heads.clear()


class _Head:
    """The header lines of a request, each with the line break before it, and the headers parsed from them."""

    __slots__ = ("_lines", "has_length", "headers", "method", "repeated")

    def __init__(self, request: IncomingRequest, lines: bytes, *, has_length: bool) -> None:
        """With a content length, the lines have ``%d`` in place of its digits."""
        self.method = request.method
        self.headers, self.repeated = request.all_headers()
        self._lines = lines
        self.has_length = has_length

    def matches(self, lines: bytes, body: bytes) -> bool:
        """Whether these are the same lines, except for the length, which must be that of the body."""
        if self.has_length:
            return lines == self._lines % len(body)
        return not body and lines == self._lines


def _cacheable_head(lines: bytes, request: IncomingRequest) -> _Head | None:
    """The head of a request with these header lines; None unless they are plain."""
    headers, repeated = request.all_headers()
    if not _is_plain(lines, headers, repeated):
        return None
    if "content-length" not in headers:
        return _Head(request, lines, has_length=False)
    length = _LENGTH_LINE.search(lines)
    if length is None or length[1].decode() != headers["content-length"]:
        return None
    before, after = (part.replace(b"%", b"%%") for part in (lines[: length.start(1)], lines[length.end(1) :]))
    return _Head(request, b"%b%%d%b" % (before, after), has_length=True)


def _is_plain(lines: bytes, headers: Headers, repeated: RepeatedHeaders) -> bool:
    """Whether the lines can be read in one way only, httptools has read them so, and none changes its state."""
    return (
        len(lines) <= _CACHED_BYTES
        and _HEADER_LINES.fullmatch(lines) is not None
        and lines.count(b"\r\n") == len(headers) + len(repeated)
        and _STATEFUL_HEADERS.isdisjoint(headers)
        and all(name != "content-length" for name, _ in repeated)
    )
