"""The frame of the commands here: options, progress, histories, exit status."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.system.faults.records import Record
from tests.system.faults.verdict import Verdict

HISTORY = "history.txt"
FAILED = 1

Say = Callable[[str], None]
Run = Callable[[Path, Say], Coroutine[Any, Any, bool]]
"""Runs a test in a directory; returns whether it passed. Raises AssertionError, in a group, when it cannot go on."""


def run_command(name: str, run: Run, *, seed: int) -> int:
    """Runs a test and returns the exit status. The directory with logs and the history is kept if the test fails."""
    directory = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    say = Progress()
    with suppress(KeyboardInterrupt):
        if _passes(run, directory, say):
            shutil.rmtree(directory)
            return 0
    say(f"FAILED with seed {seed}; the logs of all servers, and the history, are in {directory}")
    return FAILED


def _passes(run: Run, directory: Path, say: Say) -> bool:
    passes = False
    try:
        passes = asyncio.run(run(directory, say))
    except* AssertionError as group:
        say(f"a process did not start again: {first(group)}")
    return passes


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
