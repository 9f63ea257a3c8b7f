"""Query strings. One reading for all: what is authorised must be what is then done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from urllib.parse import parse_qsl

_KEPT = 256
"""Longer query strings are read anew each time: anybody can send them."""

_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


class Query:
    """The query string: of repeated parameters the first counts, as kube-apiserver has it."""

    __slots__ = ("_values",)

    def __init__(self, query_string: bytes) -> None:
        self._values = (_values_once if len(query_string) <= _KEPT else _values)(query_string)

    def first(self, name: str, default: str = "") -> str:
        values = self._values.get(name)
        return values[0] if values else default

    def all(self, name: str) -> Sequence[str]:
        return self._values.get(name, ())

    def __bool__(self) -> bool:
        """Whether anything is asked at all."""
        return bool(self._values)

    def __contains__(self, name: str) -> bool:
        return name in self._values


def _values(query_string: bytes) -> Mapping[str, Sequence[str]]:
    values: dict[str, list[str]] = {}
    if query_string:
        for name, value in _pairs(query_string):
            values.setdefault(name, []).append(value)
    return values


_values_once = lru_cache(1024)(_values)
"""Most requests repeat what others asked for, such as who manages fields."""


def _pairs(query_string: bytes) -> Iterable[tuple[str, str]]:
    """As Go reads a query: a pair with a semicolon or with a broken escape is left out."""
    text = query_string.decode("utf-8", "replace")
    if ";" in text or "%" in text:
        text = "&".join(part for part in text.split("&") if ";" not in part and not _BROKEN_ESCAPE.search(part))
    return parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="replace")
