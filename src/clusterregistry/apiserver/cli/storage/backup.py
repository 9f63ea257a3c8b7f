"""``storage backup FILE``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clusterregistry.apiserver.cli.storage.command_line import StorageCommand
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.product import Product
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import say
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import BOOLEAN
from clusterregistry.cli.progress import Progress, counted, shown_bytes
from clusterregistry.cli.subcommand import Operands

if TYPE_CHECKING:
    from clusterregistry.apiserver.storage.sqlite.backup import OpenDatabase


_HELP = """\
Writes all objects, as of now, into one file. The server may go on: it neither waits nor is it slowed down.
The file gets its name when it is complete and checked; only you can read it. Certificates are not in it: keep
ca.crt and ca.key from the data directory beside it.

Usage:
  PROGRAM storage backup FILE [flags]

Examples:
  # The registry of this user
  PROGRAM storage backup registry-backup.db

  # Another one; every night to the same name
  PROGRAM storage backup --data-dir=/var/lib/PROGRAM --force /backup/registry.db
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupOptions:
    force: bool = option(False, kind=BOOLEAN, help="Replace FILE if it is there.")


def _run(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    """Raises OptionsError, and StorageUnavailable when there is no backup."""
    given = COMMAND.read(arguments, environ, product.options)
    from clusterregistry.apiserver.storage.sqlite import backup, stats  # noqa: PLC0415 - not for a mistyped flag

    (target,) = given.operands
    removed = backup.back_up(
        given.database, target, overwrite=given.own.force, progress=Progress("backed up", "pages of the database")
    )
    holds = stats.measure(target)
    say(
        f"Backed up {counted(sum(holds.objects.values()), 'object')} at revision {holds.revision} "
        f"to {target} ({shown_bytes(holds.file_bytes)}).",
        *_next_steps(given.server, target, removed=removed),
    )
    return exit_status.OK


def _next_steps(server: CompletedOptions, target: Path, *, removed: OpenDatabase | None) -> list[str]:
    restore = f"{server.program} storage restore {shlex.quote(str(target))}"
    if removed is None:
        return [
            f"Next: keep it on another machine, with ca.crt and ca.key from {server.data_dir}.",
            f"      To put it back: {restore}",
        ]
    return [
        f"It is what the server (process {removed.pid}) still has open: the database was removed or replaced.",
        f"Next: stop the server, put the data back ({restore}),",
        "      and start the server.",
    ]


COMMAND = StorageCommand(
    name="backup",
    summary="write a backup, also while the server runs",
    help=_HELP,
    own=BackupOptions,
    operands=Operands(least=1, most=1, missing="name the FILE that the backup is to be written to"),
    interrupted="no backup was written; run it again",
    run=_run,
)
