"""Signs of life on standard error, for work that takes longer than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from clusterregistry.cli.console import complain

PATIENCE = 1.0
"""Seconds that pass without a word: what is done by then needs none."""

_ON_TERMINAL = 1.0
_IN_LOG = 10.0
"""Seconds between two lines: a log that somebody keeps need not have all of them."""


class Progress:
    """Call it with how much of how much is done, as often as you like; it says so now and then.

    ``doing`` is how a line begins, such as "copied", ``unit`` what is counted.
    """

    def __init__(self, doing: str, unit: str, *, now: Callable[[], float] = time.monotonic) -> None:
        self._doing, self._unit, self._now = doing, unit, now
        self._next = now() + PATIENCE

    def __call__(self, done: int, total: int) -> None:
        now = self._now()
        if now < self._next:
            return
        self._next = now + (_ON_TERMINAL if sys.stderr.isatty() else _IN_LOG)
        complain(f"... {self._doing} {self._measure(done, total)}")

    def _measure(self, done: int, total: int) -> str:
        if not total:
            return f"the {self._unit} that there are"
        return f"{done:,} of {total:,} {self._unit} ({100 * done // total}%)"


def shown_bytes(count: int) -> str:
    """A size as people say it: ``312 bytes``, ``4.2 KB``, ``1.7 GB``."""
    size = float(count)
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:  # noqa: PLR2004 - what the prefixes mean
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def counted(count: int, noun: str) -> str:
    """``1 object``, ``1,234 objects``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
