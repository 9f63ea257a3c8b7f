"""Durations: those in Go's syntax, such as ``1m30s``, with the errors of Go's time package, and those in tables."""

from __future__ import annotations

import re

MINUTE, HOUR, DAY = 60, 3600, 24 * 3600
_YEAR = 365 * DAY

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the micro sign
    "μs": 10**3,  # the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"([0-9]*)(\.[0-9]*)?([^0-9.]*)", re.ASCII | re.DOTALL)
_LARGEST = 2**63
_LONGEST_TEXT = 256
"""Characters: a longer text is refused before it is parsed."""


def parse_duration(text: str) -> float:
    """Returns the seconds of a duration. Raises ValueError."""
    rest = text[1:] if text[:1] in {"+", "-"} else text
    if not rest or len(rest) > _LONGEST_TEXT:
        raise _invalid(text)
    nanoseconds = 0 if rest == "0" else _sum(rest, text)
    return (-nanoseconds if text[0] == "-" else nanoseconds) / 10**9


def _sum(rest: str, text: str) -> int:
    total = 0
    while rest:
        part = _PART.match(rest)
        whole, fraction, unit = part.groups(default="") if part else ("", "", "")
        if not whole and len(fraction) < 2:  # noqa: PLR2004 - the point and a digit
            raise _invalid(text)
        if not unit:
            raise ValueError(f"time: missing unit in duration {_quoted(text)}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}")
        total += int(float("0" + fraction) * _UNITS[unit]) + int(whole or "0") * _UNITS[unit]
        rest = rest[len(whole) + len(fraction) + len(unit) :]
    if total >= _LARGEST:
        raise _invalid(text)
    return total


def _invalid(text: str) -> ValueError:
    return ValueError(f"time: invalid duration {_quoted(text[:_LONGEST_TEXT])}")


def _quoted(text: str) -> str:
    """Quotes a text as the time package does: every byte that is not printable ASCII is escaped."""
    shown = [
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}"  # noqa: PLR2004
        for byte in text.encode("utf-8", "surrogatepass")
    ]
    return f'"{"".join(shown)}"'


def human_duration(seconds: int) -> str:
    """A duration as kube-apiserver shows it in tables: one unit, or two where the second one still matters."""
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    if seconds < 2 * MINUTE:
        return f"{seconds}s"
    for limit, unit, letter, smaller, small_letter in (
        (10 * MINUTE, MINUTE, "m", 1, "s"),
        (3 * HOUR, MINUTE, "m", 0, ""),
        (8 * HOUR, HOUR, "h", MINUTE, "m"),
        (2 * DAY, HOUR, "h", 0, ""),
        (8 * DAY, DAY, "d", HOUR, "h"),
        (2 * _YEAR, DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", DAY, "d"),
    ):
        if seconds < limit:
            rest = seconds % unit // smaller if smaller else 0
            return f"{seconds // unit}{letter}" + (f"{rest}{small_letter}" if rest else "")
    return f"{seconds // _YEAR}y"
