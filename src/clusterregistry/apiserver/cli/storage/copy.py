"""``storage copy``."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from clusterregistry.apiserver.cli.storage.command_line import SERVER_FLAGS, CommandLine, StorageCommand
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.options.storage import etcd_settings
from clusterregistry.apiserver.product import Product
from clusterregistry.apiserver.storage import location
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.location import EtcdLocation, Location, SQLiteLocation
from clusterregistry.apiserver.storage.transfer import Copied, TargetNotEmpty, copy
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import indented, say
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import BOOLEAN, Kind
from clusterregistry.cli.progress import Progress, counted
from clusterregistry.cli.subcommand import Operands

_NAMED = 5
"""Keys that a message names, of many."""

PLACE: Kind[Location | None] = Kind(metavar="PLACE", parse=location.parse, show=lambda place: str(place or ""))
ETCD_FLAGS = (
    "etcd-prefix",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-keyfile",
    "etcd-username",
    "etcd-password-file",
)
"""The server's options with credentials for etcd; the place itself has the addresses."""


_HELP = """\
Copies all objects from one store to another, byte for byte: uids and timestamps stay, resource versions are new ones.
Stop every server on both stores first. Nothing is ever changed or removed in either of them, but for what is
added to the target. If it fails half way, run it again: what is there already is skipped. A target that holds other
objects is refused before anything is written.

Usage:
  PROGRAM storage copy [--from=PLACE] --to=PLACE [flags]

Examples:
  # From the data directory of this user to etcd, and back into a new file
  PROGRAM storage copy --to=etcd:10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379
  PROGRAM storage copy --from=etcd:10.0.0.1:2379 --to=sqlite:registry.db

  # etcd with TLS and client certificates
  PROGRAM storage copy --to=etcd:https://etcd.example.com:2379 \\
    --etcd-cafile=ca.crt --etcd-certfile=client.crt --etcd-keyfile=client.key
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOptions:
    source: Location | None = option(
        None,
        kind=PLACE,
        flag="from",
        help="The store to read: sqlite:FILE or etcd:HOST:PORT,HOST:PORT,... (https://HOST:PORT for TLS).",
        default_shown="where the server keeps its objects, such as the database in the data directory",
    )
    target: Location | None = option(
        None,
        kind=PLACE,
        flag="to",
        help="The store to write to, in the same way. An SQLite file is made if it is not there.",
    )
    merge: bool = option(
        False,
        kind=BOOLEAN,
        help="Also copy into a store that holds other objects. What is there stays as it is: an object that is there "
        "with another content is not replaced, but named in the end.",
    )


def _run(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    """Raises OptionsError, and StorageError when not everything was copied."""
    given = COMMAND.read(arguments, environ, product.options)
    source, target = _places(given)
    copied = asyncio.run(_copy(source, target, merge=given.own.merge))
    _report(copied, source=source, target=target)
    return exit_status.OK


def _places(given: CommandLine[CopyOptions]) -> tuple[Location, Location]:
    if given.own.target is None:
        raise OptionsError([Problem("--to", "say where to copy to", "--to=sqlite:FILE or --to=etcd:HOST:PORT")])
    source = _with_access(given.own.source, given.server) if given.own.source else _own_place(given)
    target = _with_access(given.own.target, given.server)
    if source == target:
        raise OptionsError([Problem("--to", "this is the place to copy from")])
    return source, target


def _own_place(given: CommandLine[CopyOptions]) -> Location:
    """Returns the store of the server."""
    return EtcdLocation(given.server.etcd) if given.server.etcd else SQLiteLocation(given.database)


def _with_access(place: Location, server: CompletedOptions) -> Location:
    """Returns the place with the credentials for etcd, which are options of the server."""
    if isinstance(place, SQLiteLocation):
        return place
    settings = etcd_settings(replace(server.storage, etcd_servers=place.servers))
    return EtcdLocation(settings) if settings else place


async def _copy(source: Location, target: Location, *, merge: bool) -> Copied:
    if isinstance(source, SQLiteLocation) and not source.path.is_file():
        raise StorageUnavailable(f"there is no database at {source.path}", remedy="name it with --from or --data-dir")
    async with AsyncExitStack() as stack:
        reading = await location.open_location(source)
        stack.push_async_callback(reading.close)
        writing = await location.open_location(target)
        stack.push_async_callback(writing.close)
        try:
            return await copy(reading, writing, merge=merge, progress=Progress("copied", "objects"))
        except TargetNotEmpty as error:
            raise _refusal(target, error) from None


def _refusal(target: Location, error: TargetNotEmpty) -> StorageUnavailable:
    wrong = []
    if error.foreign:
        wrong.append(f"{counted(len(error.foreign), 'object')} that the source has not ({_some(error.foreign)})")
    if error.differing:
        wrong.append(f"{counted(len(error.differing), 'object')} with another content ({_some(error.differing)})")
    return StorageUnavailable(
        f"{target} is not empty: it holds {' and '.join(wrong)}",
        remedy="copy into an empty store, or add --merge to copy what it lacks and leave alone what it has",
    )


def _some(keys: Sequence[str]) -> str:
    return ", ".join(keys[:_NAMED]) + (", ..." if len(keys) > _NAMED else "")


def _report(copied: Copied, *, source: Location, target: Location) -> None:
    say(f"Copied {counted(copied.created, 'object')} from {source} (revision {copied.revision}) to {target}.")
    if copied.skipped:
        say(f"{counted(copied.skipped, 'object')} had been there already.")
    if copied.differing:
        say(
            f"{counted(len(copied.differing), 'object')} there with another content, not replaced:",
            *indented(copied.differing),
        )
    say(*_next_steps(source, target))


def _next_steps(source: Location, target: Location) -> list[str]:
    if isinstance(target, EtcdLocation):
        flags = f"--etcd-servers={','.join(target.servers)}"
    else:
        flags = f"a --data-dir that has this file as {location.DATABASE}"
    return [
        f"Next: start the server with {flags}.",
        "      Resource versions are new ones: restart clients that watch.",
        f"      Keep {source} until you are sure.",
    ]


COMMAND = StorageCommand(
    name="copy",
    summary="copy all objects to another store: from SQLite to etcd, back, or to another file",
    help=_HELP,
    own=CopyOptions,
    server_flags=(*ETCD_FLAGS, *SERVER_FLAGS),
    operands=Operands(),
    interrupted="run it again: what has been copied is skipped",
    run=_run,
)
