"""Measures every path and writes new budgets, or shows where the operations of one path are.

make budgets
make budgets ARGS='--show "list as a table"'
"""

import argparse
import tempfile
from pathlib import Path

from tests.system.performance import budgets
from tests.system.performance.operations import Operations
from tests.system.performance.paths import OBJECTS, measured
from tests.system.performance.servers import fill, serving


def _measured() -> dict[str, Operations]:
    with tempfile.TemporaryDirectory(prefix="budgets-") as directory:
        fill(Path(directory), OBJECTS)
        with serving(Path(directory)) as server:
            return measured(server)


def _written(found: dict[str, Operations]) -> None:
    _, before = budgets.read() if budgets.FILE.exists() else ("", {})
    budgets.write({name: operations.total for name, operations in found.items()})
    for name, operations in found.items():
        old = before.get(name)
        change = f"{operations.total / old - 1:+.1%}" if old else "new"
        print(f"{name:20} {operations.total:10,} {change:>8}")  # noqa: T201 - it is a command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", metavar="PATH", help="show in which functions the operations of a path are")
    chosen = parser.parse_args()
    found = _measured()
    if not chosen.show:
        _written(found)
    elif chosen.show in found:
        print(f"{chosen.show}: {found[chosen.show].total:,} operations\n{found[chosen.show].top(40)}")  # noqa: T201
    else:
        parser.error(f"{chosen.show} is none of: {', '.join(found)}")


if __name__ == "__main__":
    main()
