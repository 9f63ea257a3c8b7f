"""Progress, histories and options of the commands here."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.system.faults.records import Record
from tests.system.faults.verdict import Verdict

HISTORY = "history.txt"

Say = Callable[[str], None]


class Progress:
    """Lines for a person, each with the seconds since the beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - self._began:7.1f} s  {text}\n")
        sys.stdout.flush()


def keep_if_wrong(record: Record, verdict: Verdict, directory: Path) -> None:
    """Writes a history with violations to a directory, to find the cause."""
    if verdict.violations:
        report = verdict.report(most=len(verdict.violations))
        (directory / HISTORY).write_text("\n".join([report, "", *record.lines()]))


def first(error: BaseException) -> BaseException:
    """The first error of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def seed_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32), help="of an earlier run: same choices")


def positive(text: str) -> int:
    """The number that an option has."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)
