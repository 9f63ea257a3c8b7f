"""The texts of --help for the storage commands; the options in them come from the commands' dataclasses."""

from __future__ import annotations

import textwrap
from typing import Any

from clusterregistry.apiserver.cli.storage.backup import BackupOptions
from clusterregistry.apiserver.cli.storage.check import CheckOptions
from clusterregistry.apiserver.cli.storage.command_line import SERVER_FLAGS, shown_flag
from clusterregistry.apiserver.cli.storage.copy import ETCD_FLAGS, CopyOptions
from clusterregistry.apiserver.cli.storage.restore import RestoreOptions
from clusterregistry.apiserver.cli.storage.stats import StatsOptions
from clusterregistry.apiserver.options.groups import OptionSet
from clusterregistry.cli.options.field import Option, options_of

STORAGE = """\
Looks after the data of a registry: backups, checks, and moving from one engine to another.

Usage:
  PROGRAM storage COMMAND [flags]

Commands:
  backup FILE    write a backup, also while the server runs
  restore FILE   put a backup in the place of the database, while the server is stopped
  check [FILE]   look whether the database, or a backup, is whole
  stats [FILE]   tell how much is in it
  copy           copy all objects to another store: from SQLite to etcd, back, or to another file

Examples:
  PROGRAM storage backup registry-backup.db
  PROGRAM storage check registry-backup.db
  PROGRAM storage copy --to etcd:10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379

More about a command: PROGRAM storage backup --help

Exit status:
  0  done
  1  check has found something wrong
  2  the command line, the environment or the configuration file is wrong; every mistake is named
  3  it could not be done; a line says what to do
"""

_BACKUP = """\
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

_RESTORE = """\
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

_CHECK = """\
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

_STATS = """\
Tells how many objects there are, which revisions can be read, and how large the files are. The server may be running.

Usage:
  PROGRAM storage stats [FILE] [flags]

Examples:
  PROGRAM storage stats
  PROGRAM storage stats -o json
"""

_COPY = """\
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

_TEXTS: dict[str, tuple[str, type[Any]]] = {
    "backup": (_BACKUP, BackupOptions),
    "restore": (_RESTORE, RestoreOptions),
    "check": (_CHECK, CheckOptions),
    "stats": (_STATS, StatsOptions),
    "copy": (_COPY, CopyOptions),
}

INTERRUPTED = {
    "backup": "no backup was written; run it again",
    "restore": "look whether the database is there (`storage check`), or restore again",
    "check": "run it again",
    "stats": "run it again",
    "copy": "run it again: what has been copied is skipped",
}

_SHORT = {"output": "-o, ", "v": "-v, "}
_INDENT = " " * 6


NAMES = tuple(_TEXTS)


def of(name: str, known: OptionSet) -> str:
    """The help of one command."""
    flags = "\n".join(_described(each) for each in options(name, known))
    return known.names_program(_TEXTS[name][0]) + f"\nFlags:\n{flags}\n"


def options(name: str, known: OptionSet) -> list[Option]:
    """All that a command takes: its own, and those of the server that say where the data is."""
    own = _TEXTS[name][1]
    flags = (*ETCD_FLAGS, *SERVER_FLAGS) if own is CopyOptions else SERVER_FLAGS
    return [*options_of(own), *(known.by_flag[flag] for flag in flags)]


def summary(name: str) -> str:
    """What a command does, from the list of commands."""
    line = next(line for line in STORAGE.splitlines() if line.startswith(f"  {name} "))
    return line.removeprefix(f"  {name}").strip().removeprefix("FILE").removeprefix("[FILE]").strip()


def _described(option: Option) -> str:
    kind = option.details.kind
    value = f"={kind.metavar}" if kind.bare is None else f"[={kind.metavar}]"
    text = f"{option.details.help}{_default(option)}".replace("`", "")
    lines = textwrap.wrap(text, 110, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)
    return "\n".join((f"  {_SHORT.get(option.flag, '')}--{shown_flag(option.flag)}{value}", *lines))


def _default(option: Option) -> str:
    return f" Default: {option.default_text}." if option.default or option.details.default_shown else ""
