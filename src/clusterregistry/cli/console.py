"""Writes for people. A reader that went away is no reason to fail."""

from __future__ import annotations

import contextlib
import re
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


_QUOTED_COMMAND = re.compile(r"`(?=(?:standalone|aggregated|storage|version)\b)")


def with_program(text: str, program: str) -> str:
    """Puts the name of the program before the commands that a message quotes, such as `storage check`."""
    return _QUOTED_COMMAND.sub(f"`{program} ", text)


def indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
