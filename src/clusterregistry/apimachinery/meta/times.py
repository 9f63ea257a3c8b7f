"""Times on the wire: RFC 3339, in UTC, to the second (metav1.Time) or with six decimals (metav1.MicroTime)."""

from __future__ import annotations

import re
import time as clock
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from clusterregistry.apimachinery.bounded_cache import bounded_cache

ZERO = "0001-01-01T00:00:00Z"
ZERO_MICRO = "0001-01-01T00:00:00.000000Z"
"""Go's zero time: on the wire it counts as absent."""

_GO_LAYOUT = "2006-01-02T15:04:05Z07:00"
_GO_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"

_Parts = Sequence[tuple[re.Pattern[str], str]]


def _compiled(*parts: tuple[str, str]) -> _Parts:
    return tuple((re.compile(pattern), shown) for pattern, shown in parts)


_TO_MINUTES = _compiled(
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
)
_ZONE = (r"Z|[+-]\d{2}:\d{2}", "Z07:00")
_PARTS = (*_TO_MINUTES, *_compiled((r"\d{2}(?:[.,]\d+)?", "05"), _ZONE))
_MICRO_PARTS = (*_TO_MINUTES, *_compiled((r"\d{2}", "05"), (r"[.,]\d{6}", ".000000"), _ZONE))
_RANGES = ((1, 1, 12, "month"), (2, 1, 31, "day"), (3, 0, 23, "hour"), (4, 0, 59, "minute"), (5, 0, 59, "second"))
_SPLIT = re.compile(r"(\d{4})-(\d{2})-(\d{2})T(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))")
_IN_PASSING = {"01": (1, 12, "month"), "15": (0, 23, "hour"), "04": (0, 59, "minute"), "05": (0, 59, "second")}
"""The parts that Go checks before it reads on; it checks the day at last."""
_ZONE_RANGES = ((9, 24, "hour"), (10, 60, "minute"))
_DECIMALS = 6
"""Of a MicroTime, which has neither more nor fewer."""

_USUAL_SECONDS = r"(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_USUAL = re.compile(_USUAL_SECONDS + "Z", re.ASCII)
_USUAL_MICRO = re.compile(_USUAL_SECONDS + r"\.\d{6}Z", re.ASCII)


@bounded_cache(4096, longest=len(ZERO))
def is_usual(text: str) -> bool:
    """Whether a text is a time in the form in which we write it. Some other texts are valid times, too.

    Cached: objects have several times, most of them from an earlier write, and a fleet's heartbeats share seconds.
    """
    return _USUAL.fullmatch(text) is not None


def is_usual_micro(text: str) -> bool:
    """The same for a MicroTime. Not cached: hardly two are equal."""
    return _USUAL_MICRO.fullmatch(text) is not None


def parse(text: str) -> datetime:
    """Parses a time, in UTC and without fractions of a second. Raises ValueError in Go's words."""
    if is_usual(text):
        return datetime.fromisoformat(text)  # in a fifth of the time
    match = _SPLIT.fullmatch(text)
    if match is None or not text.isascii():
        raise ValueError(_misparse(text, _GO_LAYOUT, _PARTS))
    return _in_utc(text, match)


def parse_micro(text: str) -> datetime:
    """Parses a time with six decimals, in UTC. Raises ValueError in Go's words."""
    match = _SPLIT.fullmatch(text)
    if match is None or not text.isascii() or len(match[7] or "") != _DECIMALS:
        raise ValueError(_misparse(text, _GO_MICRO_LAYOUT, _MICRO_PARTS))
    return _in_utc(text, match).replace(microsecond=int(match[7]))


def normalise(text: str) -> str:
    """A time as responses have it: in UTC, to the second. Raises ValueError as ``parse`` does."""
    return text if is_usual(text) else render(parse(text))


def normalise_micro(text: str) -> str:
    """A MicroTime as responses have it. Raises ValueError as ``parse_micro`` does."""
    return text if is_usual_micro(text) else render_micro(parse_micro(text))


def render(time: datetime) -> str:
    """Formats an aware time for the wire."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def render_micro(time: datetime) -> str:
    """Formats an aware time for the wire, with six decimals."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


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
    for position, high, part in _ZONE_RANGES:
        if match[position] is not None and int(match[position]) > high:
            raise ValueError(f"parsing time {_quoted(text)}: time zone offset {part} out of range")
    try:
        year, month, day, hour, minute, second = numbers
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _offset(match)
    except (ValueError, OverflowError):
        raise ValueError(f"parsing time {_quoted(text)}: day out of range") from None


def _offset(match: re.Match[str]) -> timedelta:
    sign, hours, minutes = match.group(8, 9, 10)
    if sign is None:
        return timedelta()
    ahead = timedelta(hours=int(hours), minutes=int(minutes))
    return ahead if sign == "+" else -ahead


def _misparse(text: str, layout: str, parts: _Parts) -> str:
    """The error of Go's time.Parse: the part of the layout that does not match."""
    position = 0
    for pattern, shown in parts:
        match = pattern.match(text, position)
        if match is None:
            rest = _quoted(text[position:])
            return f'parsing time {_quoted(text)} as "{layout}": cannot parse {rest} as "{shown}"'
        if shown in _IN_PASSING and not _is_in_range(match[0], shown):
            return f"parsing time {_quoted(text)}: {_IN_PASSING[shown][2]} out of range"
        position = match.end()
    return f"parsing time {_quoted(text)}: extra text: {_quoted(text[position:])}"


def _is_in_range(number: str, shown: str) -> bool:
    low, high, _ = _IN_PASSING[shown]
    return low <= int(number[:2]) <= high


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
