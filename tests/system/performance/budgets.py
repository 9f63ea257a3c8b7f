"""The file of budgets: a figure above its budget is an error, one far below it a warning."""

from __future__ import annotations

import sys
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path

from tests.system.performance.counting import Operations

FILE = Path(__file__).with_name("budgets.toml")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""Each release of Python has bytecodes of its own."""

MORE, LESS = 0.10, 0.15
"""Shares of a budget: a figure that exceeds it by more fails, one that is lower by more gives a warning."""

_HEAD = """\
# What the server does for one request, in operations: bytecodes of Python, and calls of Python and C functions.
# Paths: tests/system/performance/paths.py. Written by `make budgets`; a commit that raises a figure gives the reason.

"""


def read() -> tuple[str, dict[str, int]]:
    """The Python that was measured, and the operations of each path."""
    content = tomllib.loads(FILE.read_text())
    return content["python"], content["operations"]


def write(figures: Mapping[str, int]) -> None:
    rows = [f'"{name}" = {figure}\n' for name, figure in figures.items()]
    FILE.write_text(f'{_HEAD}python = "{PYTHON}"\n\n[operations]\n{"".join(rows)}')


class CheaperWarning(UserWarning):
    """A path takes far fewer operations than its budget."""


def check(name: str, found: Operations, budget: int) -> None:
    """Fails if a path takes more operations than its budget allows; warns if the budget can be lowered."""
    change = found.total / budget - 1
    assert change <= MORE, (
        f"{name} takes {found.total:,} operations, {change:.0%} more than its budget of {budget:,}.\n"
        f"Most of them are in:\n{found.top()}\n"
        f"Compare with `make budgets ARGS='--show \"{name}\"'` on an earlier commit. If the change is worth the price, "
        f"write new budgets with `make budgets`, and give the reason in the commit."
    )
    if change < -LESS:
        message = f"{name} takes {found.total:,} operations, {-change:.0%} less than its budget of {budget:,}"
        warnings.warn(f"{message}: `make budgets` writes the lower budget", CheaperWarning, stacklevel=2)
