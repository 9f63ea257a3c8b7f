"""Requests from the bytes of a connection, in whatever pieces they come.

No client can make it raise or keep much. Heads and trailers are bounded in size, and what comes behind a request that
is still being answered is hardly parsed. Trailers never count as headers: who filtered those has not seen them.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import unquote

import httptools

from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.transport import ClientTransport

Headers = dict[str, str]
Repeated = Sequence[tuple[str, str]]

_PLAIN = rb"A-Za-z0-9/&=%._~:,@+-"
_LINE = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) (/[%b]{0,1024})(?:\?([?%b]{0,1024}))? HTTP/1\.1" % (_PLAIN, _PLAIN))
_HEADER_LINES = re.compile(rb"(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*)*")
_LENGTH_LINE = re.compile(rb"\r\ncontent-length: ?([0-9]{1,6})(?=\r\n|\Z)", re.IGNORECASE)
_END = b"\r\n\r\n"
_MORE_TO_KNOW = frozenset(("transfer-encoding", "expect", "upgrade", "connection", "proxy-connection"))
"""Of a request with one of these there is more to know than its headers."""

_LONGEST = 4096
"""Bytes of header lines that are remembered: each connection has its own, for each method."""

_LESSONS = 16
"""Heads of one connection that are remembered in vain: clients that number their requests have always another one."""


class HeadCache:
    """The headers of one connection's last request of each method, as the parser has read them."""

    __slots__ = ("_heads", "_in_vain")

    def __init__(self) -> None:
        self._heads: dict[bytes, _Head] = {}
        """By method."""
        self._in_vain = 0
        """How many were learnt since one was recognised."""

    def request_in(self, data: bytes, wire: ClientTransport) -> IncomingRequest | None:
        """The request, if the data are one whole request with known headers, and nothing else."""
        lines, end, body = data.partition(_END)
        line = _LINE.match(lines)
        if line is None or not end:
            return None
        method, path, query_string = line.groups(b"")
        head = self._heads.get(method)
        if head is None or not head.fits(lines[line.end() :], body):
            return None
        self._in_vain = 0
        headers = head.headers.copy()  # whoever looks at headers may drop some
        if head.has_length:
            headers["content-length"] = str(len(body))
        return IncomingRequest(wire, head.method, unquoted(path), query_string, headers, head.repeated, body)

    def learn(self, data: bytes, request: IncomingRequest) -> None:
        """The parser has made this request of data that it takes for one whole request."""
        if self._in_vain >= _LESSONS:
            return
        line = _LINE.match(data)
        head = _learnt(data[line.end() : data.find(_END)], request) if line else None
        if line and head:
            self._heads[line[1]] = head
            self._in_vain += 1
        if self._in_vain >= _LESSONS:
            self.forget()

    def forget(self) -> None:
        """Nothing that comes on this connection is what was known."""
        self._heads.clear()


class _Head:
    """The header lines of a request, each with the line break before it, and what the parser made of them."""

    __slots__ = ("_lines", "has_length", "headers", "method", "repeated")

    def __init__(self, request: IncomingRequest, lines: bytes, *, has_length: bool) -> None:
        """With the length of a body there is ``%d`` in the lines, where its digits stand."""
        self.method = request.method
        self.headers, self.repeated = request.all_headers()
        self._lines = lines
        self.has_length = has_length

    def fits(self, lines: bytes, body: bytes) -> bool:
        """Whether these are the same lines, but for the length, which is exactly that of what is behind them."""
        if self.has_length:
            return lines == self._lines % len(body)
        return not body and lines == self._lines


def _learnt(lines: bytes, request: IncomingRequest) -> _Head | None:
    """The head of a request with these header lines; None unless they are as plain as can be."""
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


def _is_plain(lines: bytes, headers: Headers, repeated: Repeated) -> bool:
    """Whether there is but one way to read the lines, the parser has read them so, and they say no more than it did."""
    return (
        len(lines) <= _LONGEST
        and _HEADER_LINES.fullmatch(lines) is not None
        and lines.count(b"\r\n") == len(headers) + len(repeated)
        and _MORE_TO_KNOW.isdisjoint(headers)
        and all(name != "content-length" for name, _ in repeated)
    )


def unquoted(path: bytes) -> str:
    text = path.decode("ascii")
    return unquote(text) if "%" in text else text


_VERSIONS = frozenset(("1.0", "1.1"))
_HOST = re.compile(r"[A-Za-z0-9!$%&()*+,.:;=@\[\]'_~-]*")
"""As Go's ``httpguts.ValidHostHeader``: what a name, an address and a port can be made of, and may be empty."""


class HeadRefusedError(Exception):
    """A head that is no request of ours to answer."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


def check_head(version: str, headers: dict[str, str], repeated: Sequence[tuple[str, str]]) -> None:
    """Raises HeadRefusedError. Headers have the values that came first, by name; ``repeated`` those behind them."""
    if version not in _VERSIONS:
        raise HeadRefusedError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, f"HTTP/{version}")
    _check_host(version, headers.get("host"))
    if "transfer-encoding" in headers:
        _check_encoding(version, headers["transfer-encoding"])
    if "expect" in headers:
        _check_expectation(headers["expect"])
    for name, value in repeated:
        if name in _CHECKS_OF_FURTHER:
            _CHECKS_OF_FURTHER[name](value)


def _check_host(version: str, host: str | None) -> None:
    if host is None:
        if version != "1.0":
            raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "no Host")
    elif not _HOST.fullmatch(host):
        raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "a Host that can be none")


def _check_encoding(version: str, encoding: str) -> None:
    """The parser takes any that ends with chunks, and would give us a body that is still encoded."""
    if version == "1.0":
        raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "an encoding that HTTP/1.0 does not know")
    if encoding.lower() != "chunked":
        raise HeadRefusedError(HTTPStatus.NOT_IMPLEMENTED, "an encoding other than chunked")


def _check_expectation(expected: str) -> None:
    if expected and expected.lower() != "100-continue":
        raise HeadRefusedError(HTTPStatus.EXPECTATION_FAILED, "an expectation other than 100-continue")


def _refuse_second_host(_: str) -> None:
    raise HeadRefusedError(HTTPStatus.BAD_REQUEST, "more than one Host")


def _refuse_second_encoding(_: str) -> None:
    raise HeadRefusedError(HTTPStatus.NOT_IMPLEMENTED, "more than one encoding")


_CHECKS_OF_FURTHER = {
    "host": _refuse_second_host,
    "transfer-encoding": _refuse_second_encoding,
    "expect": _check_expectation,
}


HEADERS_LIMIT = 1024 * 1024
"""Bytes of URL and headers together, about, as Go's server has it."""

URL_LIMIT = 64 * 1024
"""Bytes of path and query, about: they are looked at before anybody knows who asks."""

HEADERS_COUNT = 2000
"""Headers of one request, about; a proxy that tells a user's groups may send a thousand. Each is an object of ours."""

_SLICE = 4096
"""Bytes that are parsed at a time: an answer's wait bounds how many requests can be sent ahead and become objects."""

_SERVED_METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ", b"OPTIONS ")
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) /")
_STAND_IN = b"PROPFIND"  # any method that the parser takes and we do not serve

_log = logging.getLogger(__name__)


class RequestParser:
    """Reads one request after the other. The parser calls the ``on_`` methods."""

    __slots__ = (
        "_count",
        "_current",
        "_deaf",
        "_headers",
        "_held",
        "_known",
        "_method",
        "_parser",
        "_repeated",
        "_unparsed",
        "_url",
        "_wire",
        "between_messages",
        "in_head",
        "refusal",
        "requests",
    )

    def __init__(self, wire: ClientTransport) -> None:
        self.requests: deque[IncomingRequest] = deque()
        """Those that are to be answered, in their order; who has answered one removes it."""
        self.refusal: HTTPStatus | None = None
        """The status to be answered after them, when something came that is no request."""
        self.in_head = False
        self.between_messages = True
        """Whether the last request is complete, its body included."""
        self._wire = wire
        self._parser = httptools.HttpRequestParser(self)
        self._known = HeadCache()
        self._count = 0
        self._current: IncomingRequest | None = None
        self._deaf = False
        self._headers: dict[str, str] = {}
        self._held = bytearray()
        self._method = ""
        self._repeated: list[tuple[str, str]] = []
        self._unparsed = 0
        self._url = b""

    def feed(self, data: bytes) -> None:
        """Takes what has come. Never raises: what is malformed ends in a ``refusal``."""
        if self._deaf:
            return
        if len(self.requests) > 1:
            self._hold(data)
        elif self.between_messages:
            self._begin_with(data)
        else:
            self._parse_all(data)

    def go_on(self) -> None:
        """A request was answered and removed: looks at what was held back meanwhile."""
        if self._held and not self._deaf:
            held, self._held = bytes(self._held), bytearray()
            self._wire.release(len(held))
            self.feed(held)

    def close(self) -> None:
        """Nothing more will come."""
        self._deaf = True
        del self._parser  # it knows us: a cycle that would wait for the collector

    def _hold(self, data: bytes) -> None:
        self._held += data
        self._wire.hold(len(data))

    def _begin_with(self, data: bytes) -> None:
        """Parses what begins with a request, unless it has nothing new but its URL and its body."""
        request = self._known.request_in(data, self._wire)
        if request is not None:
            self._unparsed = 0
            self.requests.append(request)
            return
        before = len(self.requests)
        self._parse_all(data)
        if self.between_messages and len(self.requests) == before + 1:
            self._known.learn(data, self.requests[-1])

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
            if self._deaf:
                return
            self._parse(data[start : start + _SLICE])

    def _parse(self, data: bytes) -> None:
        if self.between_messages and not data.startswith(_SERVED_METHODS):
            data = self._with_known_method(data)
        self._unparsed += len(data)
        if self._unparsed > HEADERS_LIMIT or self._count > HEADERS_COUNT:
            # The parser keeps all of a head, or of the trailers of a body: neither may go on for ever.
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "more than a head or trailers may have")
            return
        if self.in_head and len(self._url) > URL_LIMIT:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG, "a URL that is too long")
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._stay(self.requests[-1])
        except httptools.HttpParserError as error:
            why = error.__context__  # what our own methods raised
            status = why.status if isinstance(why, HeadRefusedError) else HTTPStatus.BAD_REQUEST
            self._refuse(status, str(why or error))

    def _stay(self, request: IncomingRequest) -> None:
        """Another protocol would follow this request now: no. Its body is lost, for the parser takes that for it."""
        self._deaf = True
        if request.announces_body:
            request.complete, self._current = False, request
            self._refuse(HTTPStatus.BAD_REQUEST, "a body behind a request for another protocol")

    def _with_known_method(self, data: bytes) -> bytes:
        """The parser takes no method that it does not know, and the client is to hear what we say to it."""
        start = _REQUEST_LINE.match(data)
        if start is None:
            return data
        self._method = start[1].decode()
        return _STAND_IN + data[start.end(1) :]

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        _log.debug("refused what a client sent: %s", why)
        self._deaf = True
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
            # The parser leaves what is behind a value, spaces and tabs, which are no part of it.
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
        request = self._current = IncomingRequest(self._wire, method, path, query_string, self._headers, self._repeated)
        self.requests.append(request)
        if version == "1.0":
            request.keep_alive = request.takes_chunks = False
        elif not keep_alive or parser.should_upgrade():
            request.keep_alive = False
        if not keep_alive:
            self._known.forget()

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
    """The path, decoded, and the query. What this raises, the parser turns into an error of its own."""
    if url.startswith(b"/") and url.find(b"#") < 0:  # ``in`` costs six times as much for bytes
        raw_path, _, query_string = url.partition(b"?")
    else:
        parsed = httptools.parse_url(url)
        raw_path, query_string = parsed.path, parsed.query or b""
    return unquoted(raw_path), query_string
