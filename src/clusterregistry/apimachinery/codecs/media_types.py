"""``Accept`` headers: the media ranges of a client in the order of its preference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_NO_QUALITY = 0.0
_MOST_CLAUSES, _MOST_PARAMETERS = 100, 20
"""The most clauses and parameters that are read: a client can send a megabyte, and browsers send less than ten."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One media range of an Accept header."""

    media_type: str
    parameters: Mapping[str, str]
    quality: float

    def matches(self, media_type: str) -> bool:
        wanted_type, _, wanted_subtype = self.media_type.partition("/")
        offered_type, _, offered_subtype = media_type.partition("/")
        return wanted_type in ("*", offered_type) and wanted_subtype in ("*", offered_subtype)


def clauses(accept: str) -> list[Clause]:
    """The media ranges, best first: by quality, then the exact before the wildcards, then as written.

    No header, or an empty one, accepts anything.
    """
    parts = (accept.strip() or "*/*").split(",", _MOST_CLAUSES)[:_MOST_CLAUSES]
    parsed = [_clause(part) for part in parts if part.strip()]
    return sorted(parsed, key=lambda clause: (-clause.quality, clause.media_type.count("*")))


def _clause(text: str) -> Clause:
    media_type, *rest = (part.strip() for part in text.split(";", _MOST_PARAMETERS)[:_MOST_PARAMETERS])
    pairs = (part.partition("=") for part in rest)
    parameters = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
    quality = parameters.pop("q", "1")
    return Clause(media_type, parameters, _quality(quality))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return _NO_QUALITY
