"""How long ago something was, as kubectl shows it: the larger the time, the coarser."""

from __future__ import annotations

from clusterregistry.apis.meta import times

_MINUTE, _HOUR, _DAY = 60, 3600, 24 * 3600
_YEAR = 365 * _DAY


def seconds_of(text: str) -> int | None:
    """An RFC 3339 time in seconds since 1970; None for what is no time."""
    try:
        return int(times.parse(text).timestamp())
    except ValueError:
        return None


def age(seconds: int | None, now: float) -> str:
    """The age at ``now`` of what was at a time (seconds since 1970); ``<unknown>`` for what is no time."""
    return "<unknown>" if seconds is None else human_duration(int(now - seconds))


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
