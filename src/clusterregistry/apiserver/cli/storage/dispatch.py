"""The storage commands: runs one, and reports what goes wrong in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.cli.storage import backup, check, copy, help_text, restore, stats
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.cli import exit_status, program
from clusterregistry.cli.console import say
from clusterregistry.cli.options.problems import OptionsError
from clusterregistry.cli.program import Command, Program

COMMANDS: dict[str, Command] = {
    "backup": backup.run,
    "restore": restore.run,
    "check": check.run,
    "stats": stats.run,
    "copy": copy.run,
}


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs one storage command and returns the exit status."""
    commands = {name: partial(_run, name) for name in COMMANDS}
    return Program(name="clusterregistry storage", help=help_text.STORAGE, commands=commands).run(arguments, environ)


def _run(name: str, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    if program.asked_for(arguments):
        say(help_text.of(name).rstrip())
        return exit_status.OK
    command = f"clusterregistry storage {name}"
    try:
        return COMMANDS[name](arguments, environ)
    except OptionsError as error:
        return program.report_usage(command, error)
    except OperatorError as error:
        return program.report_failure(command, error)
    except StorageError as error:
        return program.report_failure(command, OperatorError(str(error), remedy=getattr(error, "remedy", "")))
    except KeyboardInterrupt:  # no success: an interrupted backup does not exist
        interrupted = OperatorError("interrupted", remedy=help_text.INTERRUPTED[name])
        return program.report_failure(command, interrupted)
