"""Requests as authenticators see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class FakeRequest:
    headers: dict[str, str] = field(default_factory=dict)
    client_certificate: bytes | None = None

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    def header_values(self, name: str) -> Sequence[str]:
        return [self.headers[name]] if name in self.headers else []


def with_authorization(value: str) -> FakeRequest:
    return FakeRequest({"authorization": value})
