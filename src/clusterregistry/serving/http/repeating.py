"""Heads that need not be parsed, because they were before.

A client sends the same headers with one request after the other. What the parser has made of them once it would make
of them again, byte for byte, and to ask it is a tenth of what a GET costs. Only what cannot be taken in two ways is
recognised: a GET of a plain URL in HTTP/1.1, and behind that line exactly what came with an earlier one.
"""

from __future__ import annotations

import re

Headers = dict[bytes, bytes]
Repeated = list[tuple[bytes, bytes]]

_GET = re.compile(rb"GET (/[A-Za-z0-9/?&=%._~:,@+-]*) HTTP/1\.1\r\n")
_WITH_BODY = frozenset((b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"connection"))
"""Of a request with one of these there is more to know than its headers."""


class KnownHead:
    """The headers of one connection's last GET that was parsed."""

    __slots__ = ("_headers", "_lines", "_repeated")

    def __init__(self) -> None:
        self._lines = b""
        """As they came, with the empty line behind them."""
        self._headers: Headers = {}
        self._repeated: Repeated = []

    def url_in(self, data: bytes) -> bytes | None:
        """The URL, if the data are one whole request with the known headers."""
        if not data.endswith(self._lines) or not self._lines:
            return None
        line = _GET.fullmatch(data, 0, len(data) - len(self._lines))
        return line[1] if line else None

    def headers(self) -> tuple[Headers, Repeated]:
        """A copy: whoever looks at headers may drop some."""
        return self._headers.copy(), self._repeated.copy()

    def learn(self, data: bytes, headers: Headers, repeated: Repeated) -> None:
        """The parser has found these headers in data that it takes for one whole request, and for nothing else."""
        line = _GET.match(data)
        if line is None or not _WITH_BODY.isdisjoint(headers):
            return
        self._lines, self._headers, self._repeated = data[line.end() :], headers.copy(), repeated.copy()
