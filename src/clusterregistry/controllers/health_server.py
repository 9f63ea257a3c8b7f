"""A small HTTPS server for probes and metrics: GET of a few paths, one request a connection, everything bounded.

It has a certificate of its own making: kubelets do not verify one, and nothing that is served here is a secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from clusterregistry.apimachinery.operator_error import OperatorError

_log = logging.getLogger(__name__)

MAX_CONNECTIONS = 64
MAX_HEAD = 8192
REQUEST_SECONDS = 5.0
"""For the handshake, and for the whole request and its response."""

_TEXT = "text/plain; charset=utf-8"
_END_OF_HEAD = b"\r\n\r\n"
_REMEDIES = {
    errno.EADDRINUSE: "stop what listens there, or give another --secure-port; --secure-port=0 is none at all",
    errno.EACCES: "give a --secure-port of 1024 or more",
    errno.EADDRNOTAVAIL: "give --bind-address an address of this machine, or 0.0.0.0 or :: for all of them",
}


class Answer(NamedTuple):
    """What a path answers."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = _TEXT


Paths = Mapping[str, Callable[[], Answer]]


class _Server:
    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection. What a client sends beyond a head is never read."""
        if self._open >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._open += 1
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(_END_OF_HEAD)
                writer.write(self._respond(head))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a client that is slow, gone, or sends something else
        finally:
            self._open -= 1
            writer.transport.abort()

    def _respond(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):  # noqa: PLR2004 - method, target, version
            return _encode(Answer(b"not HTTP\n", HTTPStatus.BAD_REQUEST), has_body=True)
        method, target = words[0], words[1].partition(b"?")[0].decode("latin-1")
        if method not in (b"GET", b"HEAD"):
            return _encode(Answer(b"use GET\n", HTTPStatus.METHOD_NOT_ALLOWED), has_body=True)
        found = self._paths.get(target)
        answer = found() if found is not None else Answer(_known(self._paths), HTTPStatus.NOT_FOUND)
        return _encode(answer, has_body=method == b"GET")


def _known(paths: Paths) -> bytes:
    return f"there are: {' '.join(sorted(paths))}\n".encode()


def _encode(answer: Answer, *, has_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\ncontent-type: {answer.content_type}\r\n"
        f"content-length: {len(answer.body)}\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + (answer.body if has_body else b"")


@contextlib.asynccontextmanager
async def serve_health(paths: Paths, *, address: str, port: int) -> AsyncIterator[None]:
    """Serves the paths within the context. Raises OperatorError if it cannot listen; port 0 is no server."""
    if not port:
        yield
        return
    try:
        listening = await asyncio.start_server(
            _Server(paths).serve,
            address,
            port,
            limit=MAX_HEAD,
            ssl=_own_context(address),
            ssl_handshake_timeout=REQUEST_SECONDS,
            ssl_shutdown_timeout=1.0,
        )
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "give another --secure-port or --bind-address")
        # asyncio's text repeats the address, as code; errors of names have negative numbers
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        raise OperatorError(f"cannot listen on {address}:{port}: {why}", remedy=remedy) from None
    try:
        yield
    finally:
        listening.close()


def _own_context(address: str) -> ssl.SSLContext:
    """TLS with a certificate that is made now, for this process alone."""
    from clusterregistry.apimachinery import certificates  # noqa: PLC0415 - a slow import

    now, key = time.time(), certificates.new_key()
    authority = certificates.new_authority(certificates.new_key(), now=now, program="clusterregistry-controller")
    names = tuple(dict.fromkeys(("localhost", "127.0.0.1", address)))
    certificate = certificates.serving_certificate(authority, key, names=names, now=now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory() as directory:  # the ssl module reads files only
        file = Path(directory, "serving.pem")
        file.touch(mode=0o600)
        file.write_bytes(certificate + certificates.key_pem(key))
        context.load_cert_chain(file)
    return context
