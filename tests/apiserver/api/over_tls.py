"""Requests over real TLS connections."""

from __future__ import annotations

import contextlib
from typing import Self

from clusterregistry.client.rest import Call
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.sync import SyncClient, SyncStream
from tests.apiserver.api.clients import PATIENCE, Answer, Client, Watch

_ONLY_GIVEN = [(name, None) for name in ("accept", "accept-encoding", "content-type", "user-agent")]
"""A test sends the header fields that it names, and no others."""


class OverTLS(Client):
    """One connection that is kept; each watch has its own."""

    def __init__(self, access: RestConfig) -> None:
        self._client = SyncClient(access)

    def exchange(self, method: str, target: str, *, headers: list[tuple[str, str]], body: bytes) -> Answer:
        response = self._client.exchange(_call(method, target, headers, body))
        return Answer(response.status, response.fields, response.body)

    def open_watch(self, target: str, *, headers: list[tuple[str, str]]) -> Watch:
        with contextlib.ExitStack() as stack:
            stream = self._client.exchange_stream(_call("GET", target, headers), silence=PATIENCE)
            return OverTLSWatch(stack.enter_context(stream), stack.pop_all())

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _call(method: str, target: str, headers: list[tuple[str, str]], body: bytes = b"") -> Call:
    return Call(method, target, body=body or None, fields=[*_ONLY_GIVEN, *headers], timeout=PATIENCE)


class OverTLSWatch(Watch):
    def __init__(self, stream: SyncStream, opened: contextlib.ExitStack) -> None:
        self._stream, self._opened, self._rest = stream, opened, b""
        self.status = stream.status
        self.content_type = Answer(stream.status, stream.fields, b"").header("content-type") or ""

    def line(self) -> bytes:
        while b"\n" not in self._rest and (piece := self._stream.read()):
            self._rest += piece
        line, feed, self._rest = self._rest.partition(b"\n")
        return line + feed

    def close(self) -> None:
        self._opened.close()
