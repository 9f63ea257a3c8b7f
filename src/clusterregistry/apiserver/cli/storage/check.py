"""``storage check``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from clusterregistry.apiserver.cli.storage.command_line import StorageCommand
from clusterregistry.apiserver.cli.storage.stored_object import ObjectCheck
from clusterregistry.apiserver.product import Product
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, say
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import BOOLEAN
from clusterregistry.cli.progress import Progress, counted
from clusterregistry.cli.subcommand import Operands

MOST_LINES = 100
"""Problems that are printed: with more of them a backup helps, not a longer list."""

_OF_FILE = "stop the server and restore a backup (PROGRAM storage restore FILE); the file is kept"
_OF_OBJECTS = (
    "the file itself is whole, and a server serves the other objects. Delete these through the API (kubectl delete "
    "KIND NAME); some minutes later they are gone from the history too. Or stop the server and restore a backup"
)


_HELP = """\
Looks whether the database is whole: SQLite's own check of the file, and ours of the log of changes and of every object.
It changes nothing, and the server may be running. Each problem is a line on standard output.

Usage:
  PROGRAM storage check [FILE] [flags]

Examples:
  # The database in the data directory, thoroughly
  PROGRAM storage check --full

  # A backup
  PROGRAM storage check registry-backup.db

Exit status: 0 it is whole, 1 it is not, 2 a wrong command line, 3 it could not be checked.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    full: bool = option(
        False, kind=BOOLEAN, help="Have SQLite look at everything (integrity_check), not only quickly (quick_check)."
    )


def _run(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    """Raises OptionsError, and StorageUnavailable when the file cannot be checked."""
    given = COMMAND.read(arguments, environ, product.options)
    from clusterregistry.apiserver.storage.sqlite import integrity  # noqa: PLC0415 - not for a mistyped flag

    path, checked = given.file, ObjectCheck()
    found = integrity.problems(
        path, full=given.own.full, value_problem=checked, progress=Progress("checked", "revisions")
    )
    lines = list(islice(found, MOST_LINES + 1))
    if not lines:
        return _report_success(path)
    remedy = _OF_OBJECTS if checked.found == len(lines) else product.options.name_program(_OF_FILE)
    return _report_problems(path, lines, remedy=remedy)


def _report_success(path: Path) -> int:
    from clusterregistry.apiserver.storage.sqlite import stats  # noqa: PLC0415

    holds = stats.measure(path)
    objects = counted(sum(holds.objects.values()), "object")
    say(f"{path} is fine: {objects}, revision {holds.revision}, format {holds.format}.")
    return exit_status.OK


def _report_problems(path: Path, lines: Sequence[str], *, remedy: str) -> int:
    say(*lines[:MOST_LINES])
    count = f"more than {MOST_LINES}" if len(lines) > MOST_LINES else str(len(lines))
    complain(
        f"{path}: {count} problem{'s' if len(lines) > 1 else ''} found.",
        f"What to do: {remedy}.",
    )
    return exit_status.FOUND


COMMAND = StorageCommand(
    name="check",
    summary="look whether the database, or a backup, is whole",
    help=_HELP,
    own=CheckOptions,
    operands=Operands(most=1),
    interrupted="run it again",
    run=_run,
)
