"""Requests whose heads need not be parsed, because they were before.

A client sends the same headers with one request after the other; only the length of a body is another one. What the
parser has made of them once it would make of them again, byte for byte, and to ask it is a tenth of what a GET costs.
Only what cannot be taken in two ways is recognised: a plain URL in HTTP/1.1, behind that line exactly what came with an
earlier request of the same method but for the digits of its length, and as many bytes as these say. Whatever else there
is, or is missing, is for the parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from clusterregistry.apiserver.http.flow_control import Wire
from clusterregistry.apiserver.http.request_body import Incoming

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


class KnownHeads:
    """The headers of one connection's last request of each method, as the parser has read them."""

    __slots__ = ("_heads", "_in_vain")

    def __init__(self) -> None:
        self._heads: dict[bytes, _Head] = {}
        """By method."""
        self._in_vain = 0
        """How many were learnt since one was recognised."""

    def request_in(self, data: bytes, wire: Wire) -> Incoming | None:
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
        return Incoming(wire, head.method, unquoted(path), query_string, headers, head.repeated, body)

    def learn(self, data: bytes, request: Incoming) -> None:
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

    def __init__(self, request: Incoming, lines: bytes, *, has_length: bool) -> None:
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


def _learnt(lines: bytes, request: Incoming) -> _Head | None:
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
