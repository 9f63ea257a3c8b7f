"""``storage restore FILE``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from clusterregistry.apiserver.cli.storage.command_line import StorageCommand
from clusterregistry.apiserver.cli.storage.stored_object import ObjectCheck
from clusterregistry.apiserver.product import Product
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import say
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import BOOLEAN
from clusterregistry.cli.progress import Progress, counted
from clusterregistry.cli.subcommand import Operands

_HELP = """\
Puts a backup in the place of the database. The server must be stopped. The backup is checked first; the database that
is there is kept beside it, under a name with the time. Revisions leap ahead, so that no program that watches
takes the restored registry for the one it knew.

Usage:
  PROGRAM storage restore FILE [flags]

Examples:
  # Back to the state of the backup
  PROGRAM storage restore registry-backup.db

  # On a new machine: then add ca.crt and ca.key, and start the server there
  PROGRAM storage restore --data-dir=/var/lib/PROGRAM registry-backup.db
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    force: bool = option(
        False, kind=BOOLEAN, help="Restore FILE even if objects in it cannot be read; the server sets these aside."
    )


_AS_IT_IS = (
    "If there is none, --force restores this one: the server sets aside what cannot be read, and serves the rest"
)


def _run(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    """Raises OptionsError, and StorageUnavailable when nothing was restored."""
    given = COMMAND.read(arguments, environ, product.options)
    from clusterregistry.apiserver.storage.sqlite import integrity, restore, stats  # noqa: PLC0415 - not for a mistyped flag

    (backup,) = given.operands
    checked = ObjectCheck()
    value_problem = _any_value if given.own.force else checked
    try:
        restored = restore.restore(
            backup,
            given.database,
            now=datetime.now(UTC),
            check=partial(
                integrity.problems, full=True, value_problem=value_problem, progress=Progress("checked", "revisions")
            ),
            progress=Progress("restored", "pages of the database"),
        )
    except StorageUnavailable as error:
        if not checked.found:
            raise
        raise StorageUnavailable(str(error), remedy=f"{error.remedy}. {_AS_IT_IS}") from None
    holds = stats.measure(given.database)
    say(f"Restored {counted(sum(holds.objects.values()), 'object')} to {given.database}.")
    if restored.kept:
        say(f"The database that was there is kept as {restored.kept}.")
    say(
        f"Revisions continue after {restored.revision}: clients that watch will list again.",
        *_next_steps(certificates=(given.data_dir / "ca.key").exists()),
    )
    return exit_status.OK


def _any_value(_key: str, _value: bytes) -> str:
    """Accepts every value: the server checks each one itself."""
    return ""


def _next_steps(*, certificates: bool) -> list[str]:
    if certificates:
        return ["Next: start the server."]
    return [
        "Next: put ca.crt and ca.key from the backup into the same directory, then start the server.",
        "      Without them it makes a new authority, and every client needs new certificates.",
    ]


COMMAND = StorageCommand(
    name="restore",
    summary="put a backup in the place of the database, while the server is stopped",
    help=_HELP,
    own=RestoreOptions,
    operands=Operands(least=1, most=1, missing="name the FILE that is to be restored"),
    interrupted="look whether the database is there (`storage check`), or restore again",
    run=_run,
)
