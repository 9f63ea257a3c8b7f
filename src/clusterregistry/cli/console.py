"""Prints lines for users. A closed pipe is no error."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable

_failures: list[OSError] = []
"""Why results could not be printed; ``cli.entry`` reports the first one at the end."""


def say(*lines: str) -> None:
    """Prints results, on standard output."""
    try:
        print(*lines, sep="\n", flush=True)
    except (BrokenPipeError, ValueError):
        pass  # no process reads it
    except OSError as error:
        _failures.append(error)


def output_failure() -> OSError | None:
    """Why results could not be printed, such as a disk that is full; None: they could, or no process reads them."""
    return _failures[0] if _failures else None


def complain(*lines: str) -> None:
    """Prints failures, on standard error."""
    with contextlib.suppress(OSError, ValueError):
        print(*lines, sep="\n", file=sys.stderr, flush=True)


_QUOTED_COMMAND = re.compile(r"`(?=(?:standalone|aggregated|storage|version)\b)")


def with_program(text: str, program: str) -> str:
    """Puts the name of the program before the commands that a message quotes, such as `storage check`."""
    return _QUOTED_COMMAND.sub(f"`{program} ", text)


def indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
