"""Requests for filters, without a connection."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.request import Request


class BareRequest(Request):
    """A request with these headers, in this order; they may repeat. It has no body, and its client has left."""

    def __init__(
        self,
        *headers: tuple[str, str],
        method: str = "GET",
        target: str = "/",
        client_certificates: tuple[bytes, ...] = (),
    ) -> None:
        path, _, query = target.partition("?")
        first: dict[str, str] = {}
        repeated: list[tuple[str, str]] = []
        for name, value in _as_they_come(headers):
            if name in first:
                repeated.append((name, value))
            else:
                first[name] = value
        super().__init__(
            method=method,
            path=path,
            query_string=query.encode(),
            headers=first,
            repeated_headers=repeated,
            client_certificates=client_certificates,
        )
        self.info = request_info.parse(method, path, self.query_string)

    async def read_body(self) -> tuple[bytes, bool]:
        return b"", False

    async def disconnected(self) -> None:
        """At once."""


def _as_they_come(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """In UTF-8, of which each byte is a character."""
    return [(name.lower(), value.encode().decode("latin-1")) for name, value in headers]
