"""Prints the progress of long work on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from clusterregistry.cli.console import complain

PATIENCE = 1.0
"""Seconds before the first line: shorter work prints none."""

_ON_TERMINAL = 1.0
_IN_LOG = 10.0
"""Seconds between two lines: a log needs fewer of them than a terminal."""


class Progress:
    """Prints a line now and then; call it with the count done and the total, as often as you like.

    ``doing`` begins a line, such as "copied"; ``unit`` is counted.
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
            return f"all {self._unit}"
        return f"{done:,} of {total:,} {self._unit} ({100 * done // total}%)"


def shown_bytes(count: int) -> str:
    """Returns a size with its unit: ``312 bytes``, ``4.2 KB``, ``1.7 GB``."""
    size = float(count)
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:  # noqa: PLR2004 - what the prefixes mean
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def counted(count: int, noun: str) -> str:
    """``1 object``, ``1,234 objects``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
