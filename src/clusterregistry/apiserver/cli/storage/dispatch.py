"""The storage commands: runs one, and reports what goes wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.cli.storage import backup, check, copy, help_text, restore, stats
from clusterregistry.apiserver.options.groups import OptionSet
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.cli import exit_status, program
from clusterregistry.cli.console import say
from clusterregistry.cli.options.problems import OptionsError
from clusterregistry.cli.program import Program

COMMANDS: dict[str, Callable[[Sequence[str], Mapping[str, str], OptionSet], int]] = {
    "backup": backup.run,
    "restore": restore.run,
    "check": check.run,
    "stats": stats.run,
    "copy": copy.run,
}


def run(arguments: Sequence[str], environ: Mapping[str, str], known: OptionSet) -> int:
    """Runs one storage command and returns the exit status."""
    commands = {name: partial(_run, name, known) for name in COMMANDS}
    text = known.names_program(help_text.STORAGE)
    return Program(name=f"{known.program} storage", help=text, commands=commands).run(arguments, environ)


def _run(name: str, known: OptionSet, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    if program.asked_for(arguments):
        say(help_text.of(name, known).rstrip())
        return exit_status.OK
    command = f"{known.program} storage {name}"
    try:
        return COMMANDS[name](arguments, environ, known)
    except OptionsError as error:
        return program.report_usage(command, error)
    except OperatorError as error:
        return program.report_failure(command, error)
    except StorageError as error:
        return program.report_failure(command, OperatorError(str(error), remedy=getattr(error, "remedy", "")))
    except KeyboardInterrupt:  # no success: an interrupted backup does not exist
        interrupted = OperatorError("interrupted", remedy=help_text.INTERRUPTED[name])
        return program.report_failure(command, interrupted)
