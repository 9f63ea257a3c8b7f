"""Finds the storage command, and turns what goes wrong in it into words and an exit status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from clusterregistry.apiserver.cli.help_text import asked_for
from clusterregistry.apiserver.cli.storage import backup, check, copy, help_text, restore, stats
from clusterregistry.apiserver.options.groups import OptionSet
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, indented, say, with_program
from clusterregistry.cli.options.problems import OptionsError, nearest

COMMANDS: dict[str, Callable[[Sequence[str], Mapping[str, str], OptionSet], int]] = {
    "backup": backup.run,
    "restore": restore.run,
    "check": check.run,
    "stats": stats.run,
    "copy": copy.run,
}


def run(arguments: Sequence[str], environ: Mapping[str, str], known: OptionSet) -> int:
    """Runs one storage command and answers the exit status."""
    named = next(iter(arguments), "")
    if named in COMMANDS:
        return _run(named, arguments[1:], environ, known)
    if asked_for(arguments[:1]) or (named == "help" and not arguments[1:]):
        say(known.names_program(help_text.STORAGE).rstrip())
        return exit_status.OK
    if named == "help":
        return run([*arguments[1:], "--help"], environ, known)
    return _unknown(named, known)


def _run(name: str, arguments: Sequence[str], environ: Mapping[str, str], known: OptionSet) -> int:
    if asked_for(arguments):
        say(help_text.of(name, known).rstrip())
        return exit_status.OK
    try:
        return COMMANDS[name](arguments, environ, known)
    except OptionsError as error:
        return _misused(f"{known.program} storage {name}", error)
    except StorageError as error:
        return _failed(name, str(error), getattr(error, "remedy", ""), known.program)
    except KeyboardInterrupt:  # not a success: who waits for a backup must not think that there is one
        return _failed(name, "interrupted", help_text.INTERRUPTED[name], known.program)


def _misused(command: str, error: OptionsError) -> int:
    count = len(error.problems)
    complain(
        f"{command}: {count} problem{'s' if count > 1 else ''} with the command line:",
        *indented(str(problem) for problem in error.problems),
        f"See: {command} --help",
    )
    return exit_status.USAGE


def _failed(name: str, message: str, remedy: str, program: str) -> int:
    what_to_do = with_program(remedy or "see to the cause and run it again", program)
    complain(f"{program} storage {name}: {message}", f"What to do: {what_to_do}")
    return exit_status.STARTUP


def _unknown(name: str, known: OptionSet) -> int:
    if not name:
        complain(f"{known.program} storage: which command?", "", known.names_program(help_text.STORAGE).rstrip())
        return exit_status.USAGE
    near = nearest(name, COMMANDS)
    hint = f" Did you mean {near}?" if near else ""
    complain(
        f'{known.program} storage: unknown command "{name}".{hint}',
        f"Commands: {', '.join(COMMANDS)}. See: {known.program} storage --help",
    )
    return exit_status.USAGE
