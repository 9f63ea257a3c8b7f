"""Requests for filters, without a connection."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.apiserver.endpoints.request import Request


class BareRequest(Request):
    """A GET with these headers, in this order; they may repeat. Nobody sends a body."""

    def __init__(self, *headers: tuple[str, str], client_certificates: tuple[bytes, ...] = ()) -> None:
        first: dict[str, str] = {}
        repeated: list[tuple[str, str]] = []
        for name, value in _as_they_come(headers):
            if name in first:
                repeated.append((name, value))
            else:
                first[name] = value
        super().__init__(
            method="GET",
            path="/",
            query_string=b"",
            headers=first,
            repeated_headers=repeated,
            client_certificates=client_certificates,
        )

    async def read_body(self) -> tuple[bytes, bool]:
        return b"", False

    async def disconnected(self) -> None:
        raise NotImplementedError


def _as_they_come(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """In UTF-8, of which each byte is a character."""
    return [(name.lower(), value.encode().decode("latin-1")) for name, value in headers]
