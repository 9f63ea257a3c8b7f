"""A server to measure: how to reach it, and which processes it consists of."""

import json
import socket
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from benchmarks import objects

NO_FIELDS: Mapping[str, str] = MappingProxyType({})


class Target:
    """A server under load. Without a CA its certificate is taken as it comes."""

    def __init__(
        self, url: str, *, token: str, pids: Sequence[int] = (), ca_file: Path | str | None = None, name: str = ""
    ) -> None:
        parts = urlsplit(url)
        self.url, self.token, self.pids, self.name = url.rstrip("/"), token, list(pids), name or parts.netloc
        self.host = parts.hostname or "127.0.0.1"
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = _trust(ca_file) if parts.scheme == "https" else None
        self.count = 0
        """The objects bench-000000 and so on that exist."""
        self.populated: dict[str, Any] = {}
        """What it took to come to so many objects."""

    def connect(self, timeout: float = 30) -> socket.socket:
        connection = socket.create_connection((self.host, self.port), timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._tls.wrap_socket(connection, server_hostname=self.host) if self._tls else connection

    def request(
        self, method: str, path: str, body: object = None, *, content_type: str = objects.JSON, **more: str
    ) -> bytes:
        """A request as bytes. ``accept`` and further header fields are given by name, with _ for -."""
        fields = {
            "Host": f"{self.host}:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Accept": objects.JSON,
            "User-Agent": "bench",
        }
        fields |= header_fields(more)
        content = b"" if body is None else body if isinstance(body, bytes) else _compact(body)
        if body is not None:
            fields |= {"Content-Type": content_type, "Content-Length": str(len(content))}
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return head.encode() + b"\r\n" + content


def header_fields(named: Mapping[str, str]) -> dict[str, str]:
    """accept_encoding is Accept-Encoding."""
    return {name.replace("_", "-").title(): value for name, value in named.items()}


def _compact(body: object) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _trust(ca_file: Path | str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file)
    if not ca_file:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
