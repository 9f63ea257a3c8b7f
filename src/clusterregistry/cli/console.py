"""Writes for people. A reader that went away is no reason to fail."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable


def say(*lines: str) -> None:
    """Answers, on standard output."""
    with contextlib.suppress(OSError, ValueError):
        print(*lines, sep="\n", flush=True)


def complain(*lines: str) -> None:
    """Failures, on standard error."""
    with contextlib.suppress(OSError, ValueError):
        print(*lines, sep="\n", file=sys.stderr, flush=True)


def indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
