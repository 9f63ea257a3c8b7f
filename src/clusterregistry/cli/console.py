"""Prints lines for users. A closed pipe is no error."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable


def say(*lines: str) -> None:
    """Prints results, on standard output."""
    with contextlib.suppress(OSError, ValueError):
        print(*lines, sep="\n", flush=True)


def complain(*lines: str) -> None:
    """Prints failures, on standard error."""
    with contextlib.suppress(OSError, ValueError):
        print(*lines, sep="\n", file=sys.stderr, flush=True)


def indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
