"""How long ago something was, as kubectl shows it: the larger the time, the coarser."""

from __future__ import annotations

from clusterregistry.apimachinery.meta import times

_MINUTE, _HOUR, _DAY = 60, 3600, 24 * 3600
_YEAR = 365 * _DAY

NONE = -1 << 63
"""In the place of a time where there is to be no age at all: no time is as long ago."""

_MOST_TIMES = 1000
"""Times whose ages are at hand: to keep one for each of very many objects would take more time than it saves."""


def seconds_of(text: str) -> int | None:
    """An RFC 3339 time in seconds since 1970; None for what is no time."""
    try:
        return int(times.parse(text).timestamp())
    except ValueError:
        return None


class Ages(dict[int | None, bytes]):
    """The ages at one moment of times (seconds since 1970; None: of what is no time), as JSON.

    What stands behind all of them is a part of each. Many objects may be made in the same second, or each in one of its
    own: so there are more times than ages, which for what is days old are few.
    """

    def __init__(self, now: float, *, behind: bytes = b"") -> None:
        super().__init__({NONE: behind})
        self._now, self._behind = now, behind
        self._durations: dict[int, bytes] = {}

    def __missing__(self, time: int | None) -> bytes:
        found = self._written("<unknown>") if time is None else self._lasting(rounded(int(self._now - time)))
        if len(self) < _MOST_TIMES:
            self[time] = found
        return found

    def _lasting(self, seconds: int) -> bytes:
        found = self._durations.get(seconds)
        if found is None:
            found = self._durations[seconds] = self._written(human_duration(seconds))
        return found

    def _written(self, age: str) -> bytes:
        return b'"%b"%b' % (age.encode(), self._behind)


def rounded(seconds: int) -> int:
    """A duration as coarse as it can be without being worded otherwise."""
    if seconds < 10 * _MINUTE:
        return seconds
    return seconds - seconds % (_MINUTE if seconds < 8 * _HOUR else _HOUR if seconds < 8 * _DAY else _DAY)


def human_duration(seconds: int) -> str:
    """As kube-apiserver words durations in tables: one unit, or two where the second one still matters."""
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    for limit, unit, letter, smaller, small_letter in (
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    ):
        if seconds < limit:
            rest = seconds % unit // smaller if smaller else 0
            return f"{seconds // unit}{letter}" + (f"{rest}{small_letter}" if rest else "")
    return f"{seconds // _YEAR}y"
