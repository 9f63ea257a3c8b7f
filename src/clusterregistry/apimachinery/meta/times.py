"""Times on the wire: RFC 3339, in UTC, to the second."""

from __future__ import annotations

import re
import time as clock
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from clusterregistry.apimachinery.bounded_cache import bounded_cache

ZERO = "0001-01-01T00:00:00Z"
"""Go's zero time: on the wire it counts as absent."""

_GO_LAYOUT = "2006-01-02T15:04:05Z07:00"
_PARTS = tuple(
    (re.compile(pattern), shown)
    for pattern, shown in (
        (r"\d{4}", "2006"),
        ("-", "-"),
        (r"\d{2}", "01"),
        ("-", "-"),
        (r"\d{2}", "02"),
        ("T", "T"),
        (r"\d{1,2}", "15"),
        (":", ":"),
        (r"\d{2}", "04"),
        (":", ":"),
        (r"\d{2}(?:[.,]\d+)?", "05"),
        (r"Z|[+-]\d{2}:\d{2}", "Z07:00"),
    )
)
_RANGES = ((1, 1, 12, "month"), (2, 1, 31, "day"), (3, 0, 23, "hour"), (4, 0, 59, "minute"), (5, 0, 59, "second"))
_SPLIT = re.compile(r"(\d{4})-(\d{2})-(\d{2})T(\d{1,2}):(\d{2}):(\d{2})(?:[.,]\d+)?(?:Z|([+-])(\d{2}):(\d{2}))")

_USUAL = re.compile(
    r"(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ", re.ASCII
)


@bounded_cache(4096, longest=len(ZERO))
def is_usual(text: str) -> bool:
    """Whether a text is a time in the form in which we write it. Some other texts are valid times, too.

    Cached: objects have several times, most of them from an earlier write, and a fleet's heartbeats share seconds.
    """
    return _USUAL.fullmatch(text) is not None


def parse(text: str) -> datetime:
    """Parses a time, in UTC and without fractions of a second. Raises ValueError in Go's words."""
    if is_usual(text):
        return datetime.fromisoformat(text)  # in a fifth of the time
    match = _SPLIT.fullmatch(text)
    if match is None or not text.isascii():
        raise ValueError(_misparse(text))
    return _in_utc(text, match)


def normalise(text: str) -> str:
    """A time as responses have it: in UTC, to the second. Raises ValueError as ``parse`` does."""
    return text if is_usual(text) else render(parse(text))


def render(time: datetime) -> str:
    """Formats an aware time for the wire."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def present() -> str:
    """The present time on the wire, formatted once a second: every write needs it."""
    return _rendered(int(clock.time()))


@lru_cache(maxsize=1)
def _rendered(second: int) -> str:
    return render(datetime.fromtimestamp(second, UTC))


def _in_utc(text: str, match: re.Match[str]) -> datetime:
    numbers = [int(group) for group in match.groups()[:6]]
    for position, low, high, part in _RANGES:
        if not low <= numbers[position] <= high:
            raise ValueError(f"parsing time {_quoted(text)}: {part} out of range")
    try:
        year, month, day, hour, minute, second = numbers
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _offset(match)
    except (ValueError, OverflowError):
        raise ValueError(f"parsing time {_quoted(text)}: day out of range") from None


def _offset(match: re.Match[str]) -> timedelta:
    sign, hours, minutes = match.group(7, 8, 9)
    if sign is None:
        return timedelta()
    ahead = timedelta(hours=int(hours), minutes=int(minutes))
    return ahead if sign == "+" else -ahead


def _misparse(text: str) -> str:
    """The error of Go's time.Parse: the part of the layout that does not match."""
    position = 0
    for pattern, shown in _PARTS:
        match = pattern.match(text, position)
        if match is None:
            rest = _quoted(text[position:])
            return f'parsing time {_quoted(text)} as "{_GO_LAYOUT}": cannot parse {rest} as "{shown}"'
        position = match.end()
    return f"parsing time {_quoted(text)}: extra text: {_quoted(text[position:])}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
