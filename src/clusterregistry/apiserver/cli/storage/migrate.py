"""``storage migrate``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from clusterregistry.apiserver.cli.storage.command_line import SERVER_FLAGS, CommandLine, StorageCommand
from clusterregistry.apiserver.cli.storage.copy import ETCD_FLAGS
from clusterregistry.apiserver.product import Product
from clusterregistry.apiserver.storage import location
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.location import EtcdLocation, Location, SQLiteLocation
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, indented, say
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import BOOLEAN, TEXT
from clusterregistry.cli.progress import Progress, counted
from clusterregistry.cli.subcommand import Operands

if TYPE_CHECKING:
    from clusterregistry.apiserver.registry.migration import Migrated
    from clusterregistry.apiserver.registry.resource import Resource
    from clusterregistry.apiserver.storage.interface import Storage

_NAMED = 20
"""Objects that cannot be read and that a message names."""

_HELP = """\
Rewrites every stored object that is not stored in the version in which this release stores it, each in its place. A
server reads all versions that it knows: migrate before a release that no longer knows one, and, with --to-version,
before going back to a release that does not know one yet.

On SQLite the server must be stopped, and a backup is written beside the database first. On etcd servers may run. If it
is interrupted, run it again: what has been rewritten is skipped.

Usage:
  PROGRAM storage migrate [--to-version=VERSION] [--dry-run] [flags]

Examples:
  # What would be rewritten
  PROGRAM storage migrate --dry-run

  # Before going back to a release that stores another version
  PROGRAM storage migrate --to-version=v1alpha1

Exit status: 0 all is in that version, 1 some objects cannot be read and were left as they are, 2 a wrong command line,
3 it could not be done.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateOptions:
    to_version: str = option(
        "",
        kind=TEXT,
        help="The version to store objects in, such as v1alpha1. Kinds without it are stored in their own.",
        default_shown="the one in which this release stores each kind",
    )
    dry_run: bool = option(False, kind=BOOLEAN, help="Only say what would be rewritten.")


def _run(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    """Raises OptionsError, and StorageError when not everything was rewritten."""
    given = COMMAND.read(arguments, environ, product.options)
    from clusterregistry.apiserver.registry.native_resources import native_resources  # noqa: PLC0415 - as everywhere here

    resources = (*product.resources(given.server), *native_resources(event_retention=None))
    _check_version(given.own.to_version, resources)
    place: Location = EtcdLocation(given.server.etcd) if given.server.etcd else SQLiteLocation(given.database)
    if isinstance(place, SQLiteLocation) and not place.path.is_file():
        raise StorageUnavailable(f"there is no database at {place.path}", remedy="name its directory with --data-dir")
    outcomes = asyncio.run(_migrate(place, resources, given))
    return _report(outcomes, dry_run=given.own.dry_run)


def _check_version(name: str, resources: Sequence[Resource]) -> None:
    known = sorted({version.name for resource in resources for version in resource.known_versions})
    if name and name not in known:
        raise OptionsError([Problem("--to-version", f'no kind has a version "{name}"', f"one of {', '.join(known)}")])


async def _migrate(
    place: Location, resources: Sequence[Resource], given: CommandLine[MigrateOptions]
) -> list[Migrated]:
    storage = await location.open_location(place)
    try:
        outcomes = await _migrate_all(storage, resources, version=given.own.to_version, dry_run=True)
        if given.own.dry_run or not any(each.rewritten for each in outcomes):
            return outcomes
        if isinstance(place, SQLiteLocation):
            await asyncio.to_thread(_back_up, place.path, storage.revision)
        return await _migrate_all(storage, resources, version=given.own.to_version, dry_run=False)
    finally:
        await storage.close()


async def _migrate_all(
    storage: Storage, resources: Sequence[Resource], *, version: str, dry_run: bool
) -> list[Migrated]:
    from clusterregistry.apiserver.registry.migration import migrate, target_version  # noqa: PLC0415

    outcomes = []
    for resource in resources:
        progress = Progress("read" if dry_run else "migrated", resource.qualified_name)
        target = target_version(resource, version)
        outcomes.append(await migrate(storage, resource, target, dry_run=dry_run, progress=progress))
    return outcomes


def _back_up(database: Path, revision: int) -> None:
    from clusterregistry.apiserver.storage.sqlite import backup  # noqa: PLC0415

    target = Path(f"{database}.before-migration-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{revision}")
    backup.back_up(database, target, overwrite=False, progress=Progress("backed up", "pages of the database"))
    say(f"Backed up to {target}.")


def _report(outcomes: Sequence[Migrated], *, dry_run: bool) -> int:
    rewritten = [each for each in outcomes if each.rewritten]
    for each in rewritten:
        done = "would be rewritten" if dry_run else "rewritten"
        of_all = f"of {counted(each.objects, 'object')}"
        say(f"{each.resource.qualified_name}: {each.rewritten:,} {of_all} {done} in {each.version.name}")
    if not rewritten:
        total = sum(each.objects for each in outcomes)
        say(f"Nothing to rewrite: {counted(total, 'object')} as they are to be stored.")
    unreadable = [str(error) for each in outcomes for error in each.unreadable]
    if not unreadable:
        return exit_status.OK
    more = [f"... and {len(unreadable) - _NAMED:,} more"] if len(unreadable) > _NAMED else []
    complain(
        f"{counted(len(unreadable), 'object')} cannot be read, and stay as they are:",
        *indented([*unreadable[:_NAMED], *more]),
        "What to do: delete them through the API (kubectl delete KIND NAME), or restore a backup.",
    )
    return exit_status.FOUND


COMMAND = StorageCommand(
    name="migrate",
    summary="rewrite stored objects in another version of their kind",
    help=_HELP,
    own=MigrateOptions,
    server_flags=("storage-backend", "etcd-servers", *ETCD_FLAGS, *SERVER_FLAGS),
    operands=Operands(),
    interrupted="run it again: what has been rewritten is skipped",
    run=_run,
)
