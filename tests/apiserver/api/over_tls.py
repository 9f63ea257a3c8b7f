"""Requests over real TLS connections, with nothing but the standard library."""

from __future__ import annotations

import contextlib
import http.client
import ssl
from typing import Self

from tests.apiserver.api.clients import PATIENCE, Answer, Client, Watch


class OverTLS(Client):
    """One connection that is kept; each watch has its own."""

    def __init__(self, port: int, trust: ssl.SSLContext) -> None:
        self._port, self._trust = port, trust
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self._port, context=self._trust, timeout=PATIENCE)

    def exchange(self, method: str, target: str, *, headers: list[tuple[str, str]], body: bytes) -> Answer:
        _send(self._connection, method, target, headers=headers, body=body)
        response = self._connection.getresponse()
        content = response.read()
        return Answer(response.status, [(name, _text(value)) for name, value in response.getheaders()], content)

    def open_watch(self, target: str, *, headers: list[tuple[str, str]]) -> Watch:
        connection = self._connect()
        _send(connection, "GET", target, headers=headers, body=b"")
        return OverTLSWatch(connection)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _send(
    connection: http.client.HTTPSConnection, method: str, target: str, *, headers: list[tuple[str, str]], body: bytes
) -> None:
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    if body:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body or None)


def _text(value: str) -> str:
    """Headers are UTF-8 here; http.client takes them for Latin-1."""
    return value.encode("latin-1").decode("utf-8", "replace")


class OverTLSWatch(Watch):
    def __init__(self, connection: http.client.HTTPSConnection) -> None:
        self._connection = connection
        with contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            self._response = connection.getresponse()
            stack.pop_all()
        self.status = self._response.status
        self.content_type = self._response.getheader("content-type") or ""

    def line(self) -> bytes:
        return self._response.readline()

    def close(self) -> None:
        self._response.close()
        self._connection.close()
