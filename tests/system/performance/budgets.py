"""The file of budgets, and what is said when a figure does not fit it."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from tests.system.performance.counting import Operations

FILE = Path(__file__).with_name("budgets.toml")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""Each release of Python has bytecodes of its own."""

MORE, LESS = 0.10, 0.15
"""Shares of a budget by which a figure may differ from it: more would be a loss, and less a gain to be kept."""

_HEAD = """\
# What the server does for one request, in operations: bytecodes of Python, and calls of Python and C functions.
# Paths: tests/system/performance/paths.py. Written by `make budgets`; whoever raises a figure says in the commit why.

"""


def read() -> tuple[str, dict[str, int]]:
    """The Python that was measured, and the operations of each path."""
    content = tomllib.loads(FILE.read_text())
    return content["python"], content["operations"]


def write(figures: Mapping[str, int]) -> None:
    rows = [f'"{name}" = {figure}\n' for name, figure in figures.items()]
    FILE.write_text(f'{_HEAD}python = "{PYTHON}"\n\n[operations]\n{"".join(rows)}')


def complaint(name: str, found: Operations, budget: int) -> str:
    """What is wrong with a figure and what to do about it; empty if nothing is."""
    change = found.total / budget - 1
    if change > MORE:
        return (
            f"{name} takes {found.total:,} operations, {change:.0%} more than the {budget:,} that it may take.\n"
            f"Most of them are in:\n{found.top()}\n"
            f"Compare with `make budgets ARGS='--show \"{name}\"'` on an earlier commit. If it is worth the price, "
            f"write the budgets anew with `make budgets`, and say in the commit why."
        )
    if change < -LESS:
        return (
            f"{name} takes {found.total:,} operations, {-change:.0%} less than the {budget:,} that it may take.\n"
            f"That is good news: keep it with `make budgets`, which writes {FILE.name} anew."
        )
    return ""
