"""A client that sends each request in one piece, so that a server reads all of them alike.

Not ``clusterregistry.client``: what is counted is the server in this process, and how many pieces it reads counts.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import struct
from typing import Any, Self

from tests.apiserver.api.clients import ADMIN_TOKEN

PATIENCE = 100.0
"""Seconds: what is counted is slow, and so may the machine be."""


class RawClient:
    """One connection, for requests one after the other or for a watch."""

    def __init__(self, port: int, trust: ssl.SSLContext) -> None:
        plain = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._socket = trust.wrap_socket(plain, server_hostname="127.0.0.1")

    def send(self, method: str, target: str, body: Any = None, *headers: str, expect: int = 0) -> bytes:
        """The body of the answer, whose status must be good."""
        answer = self._sent(method, target, body, headers)
        content = answer.read()
        expected = (expect,) if expect else (200, 201)
        assert answer.status in expected, f"{method} {target}: {answer.status} {content[:1000]!r}"
        return content

    def watch(self, target: str) -> http.client.HTTPResponse:
        answer = self._sent("GET", target, None, ())
        assert answer.status == 200, answer.read()
        return answer

    def _sent(self, method: str, target: str, body: Any, headers: tuple[str, ...]) -> http.client.HTTPResponse:
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {target} HTTP/1.1", "Host: registry", f"Authorization: Bearer {ADMIN_TOKEN}", *headers]
        if content:
            lines.append(f"Content-Length: {len(content)}")
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode() + content)
        answer = http.client.HTTPResponse(self._socket, method=method)
        answer.begin()
        return answer

    def close(self) -> None:
        self._socket.close()

    def reset(self) -> None:
        """Resets the connection."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
