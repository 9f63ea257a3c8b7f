"""Requests as authenticators see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class FakeRequest:
    """Headers by their lower-case names; one that comes several times has a list."""

    headers: dict[str, str | list[str]] = field(default_factory=dict)
    client_certificates: tuple[bytes, ...] = ()

    def header(self, name: str) -> str:
        value = self.headers.get(name, "")
        return value if isinstance(value, str) else value[0]

    def header_values(self, name: str) -> Sequence[str]:
        value = self.headers.get(name, [])
        return value if isinstance(value, list) else [value]

    def headers_beginning(self, prefix: str) -> Sequence[tuple[str, str]]:
        found = [name for name in self.headers if name.startswith(prefix)]
        return [(name.removeprefix(prefix), value) for name in found for value in self.header_values(name)]


def with_authorization(value: str) -> FakeRequest:
    return FakeRequest({"authorization": value})
