"""The storage commands: runs one, and reports what goes wrong in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.cli.storage import backup, check, copy, migrate, restore, stats
from clusterregistry.apiserver.cli.storage.command_line import StorageCommand
from clusterregistry.apiserver.product import Product
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import say
from clusterregistry.cli.options.problems import OptionsError
from clusterregistry.cli.program import Program, asked_for, report_failure, report_usage

COMMANDS: dict[str, StorageCommand[Any]] = {
    each.name: each
    for each in (backup.COMMAND, restore.COMMAND, check.COMMAND, stats.COMMAND, copy.COMMAND, migrate.COMMAND)
}

HELP = """\
Looks after the data of a registry: backups, checks, moving from one engine to another, and from one version to another.

Usage:
  PROGRAM storage COMMAND [flags]

Commands:
  backup FILE    write a backup, also while the server runs
  restore FILE   put a backup in the place of the database, while the server is stopped
  check [FILE]   look whether the database, or a backup, is whole
  stats [FILE]   show how much is in it
  copy           copy all objects to another store: from SQLite to etcd, back, or to another file
  migrate        rewrite stored objects in another version of their kind

Examples:
  PROGRAM storage backup registry-backup.db
  PROGRAM storage check registry-backup.db
  PROGRAM storage copy --to etcd:10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379

More about a command: PROGRAM storage backup --help

Exit status:
  0  done
  1  check has found something wrong, or migrate objects that cannot be read
  2  the command line, the environment or the configuration file is wrong; every mistake is named
  3  it could not be done; a line says what to do
"""


def run(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    """Runs one storage command and returns the exit status."""
    name = f"{product.name} storage"
    commands = {each.name: partial(_run, each, product, name=f"{name} {each.name}") for each in COMMANDS.values()}
    return Program(name=name, help=product.options.name_program(HELP), commands=commands).run(arguments, environ)


def _run(
    command: StorageCommand[Any],
    product: Product,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    name: str,
) -> int:
    if asked_for(arguments):
        say(command.help_text(product.options).rstrip())
        return exit_status.OK
    try:
        return command.run(arguments, environ, product)
    except OptionsError as error:
        return report_usage(name, error)
    except OperatorError as error:
        return report_failure(name, error)
    except StorageError as error:
        return report_failure(name, OperatorError(str(error), remedy=getattr(error, "remedy", "")))
    except KeyboardInterrupt:  # no success: an interrupted backup does not exist
        return report_failure(name, OperatorError("interrupted", remedy=command.interrupted))
