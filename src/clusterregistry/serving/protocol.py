"""uvicorn's HTTP protocol with what it lacks for us.

* the client's certificate reaches the application, as the ASGI ``tls`` extension;
* the head of an answer and its body leave in one write: each write is a TLS record and a system call;
* a connection can be ended at once (a watcher that does not read);
* heads and trailers are bounded in size and heads in time, and trailers never count as headers;
* a method that the parser does not know gets its 405, where it opens a segment as it usually does.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from clusterregistry.serving.asgi import ABORT_EXTENSION

HEADERS_LIMIT = 1024 * 1024
"""Bytes of URL and headers together, about, as Go's server has it."""

HEAD_SECONDS = 32.0
"""How long a client may take for the head of a request, as kube-apiserver has it."""

_GOODBYE = 0.5  # seconds
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) /")
_KNOWN_METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
_STAND_IN = b"PROPFIND"  # any method that the parser takes and we do not serve
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 31\r\nconnection: close\r\n\r\nRequest Header Fields Too Large"
)


class JoiningTransport:
    """A transport that holds the head of an answer back until its body comes, or until the loop's next turn.

    Everything but writing and closing is the transport's own.
    """

    __slots__ = ("_flushing", "_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self._flushing: asyncio.Handle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
            self._transport.write(data)
        elif data.startswith(b"HTTP/1.1 "):
            self._head = data
            if self._flushing is None:
                # A watch may have nothing to say for long: its head must not wait for that.
                self._flushing = self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def _flush(self) -> None:
        self._flushing = None
        if self._head:
            data, self._head = self._head, b""
            self._transport.write(data)

    def close(self) -> None:
        if self._head:
            data, self._head = self._head, b""
            self._transport.write(data)
        self._transport.close()


class Protocol(HttpToolsProtocol):
    """One connection."""

    _extensions: dict[str, Any]
    _in_head = True
    _between_messages = True
    _unparsed = 0
    _head_timer: asyncio.TimerHandle | None = None
    _method: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(JoiningTransport(transport, self.loop))  # type: ignore[arg-type]
        self._extensions = {ABORT_EXTENSION: transport.abort}
        self._head_timer = self.loop.call_later(HEAD_SECONDS, transport.abort)
        ssl_object = transport.get_extra_info("ssl_object")
        certificate = ssl_object.getpeercert(binary_form=True) if ssl_object else None
        if certificate:
            self._extensions["tls"] = {"client_cert_chain": (ssl.DER_cert_to_PEM_cert(certificate),)}

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._between_messages:
            start = _REQUEST_LINE.match(data)
            if start and start[1] not in _KNOWN_METHODS:
                self._method = start[1].decode()
                data = _STAND_IN + data[start.end(1) :]
        self._unparsed += len(data)
        if self._unparsed > HEADERS_LIMIT:
            self._refuse_head()
            return
        super().data_received(data)
        if self._in_head and not self._between_messages and self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _refuse_head(self) -> None:
        """The parser keeps all of a head, or of the trailers of a body: neither may go on for ever."""
        if not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()
            # TLS would wait for a goodbye and read on meanwhile.
            self.loop.call_later(_GOODBYE, self.transport.abort)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._between_messages = False
        self._in_head = True
        self.scope["extensions"] = self._extensions

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._unparsed = 0
        self._stop_head_timer()
        super().on_headers_complete()
        # What the parser adds from now on are trailers, and no headers: who filtered those has not seen them.
        self.headers = []
        if self._method is not None:
            self.scope["method"], self._method = self._method, None

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._between_messages = True
        self._unparsed = 0

    def shutdown(self) -> None:
        """The server is stopping. An idle client that does not answer TLS's goodbye is not waited for."""
        super().shutdown()
        if self.transport.is_closing():
            self.loop.call_later(_GOODBYE, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)
