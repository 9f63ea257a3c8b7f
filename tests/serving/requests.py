"""Requests for filters, without a connection."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.handlers.requests import Request


class BareRequest(Request):
    """A GET with these headers, in this order; they may repeat. Nobody sends a body."""

    def __init__(self, *headers: tuple[str, str], client_certificates: tuple[bytes, ...] = ()) -> None:
        first: dict[bytes, bytes] = {}
        repeated: list[tuple[bytes, bytes]] = []
        for name, value in _encoded(headers):
            if first.setdefault(name, value) is not value:
                repeated.append((name, value))
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


def _encoded(headers: Sequence[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), bytes(value.encode())) for name, value in headers]
