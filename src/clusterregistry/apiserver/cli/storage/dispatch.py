"""Finds the storage command, and turns what goes wrong in it into words and an exit status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from clusterregistry.apiserver.cli.help_text import asked_for
from clusterregistry.apiserver.cli.storage import backup, check, copy, help_text, restore, stats
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, indented, say
from clusterregistry.cli.options.problems import OptionsError, nearest

COMMANDS: dict[str, Callable[[Sequence[str], Mapping[str, str]], int]] = {
    "backup": backup.run,
    "restore": restore.run,
    "check": check.run,
    "stats": stats.run,
    "copy": copy.run,
}


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs one storage command and answers the exit status."""
    named = next(iter(arguments), "")
    if named in COMMANDS:
        return _run(named, arguments[1:], environ)
    if asked_for(arguments[:1]) or (named == "help" and not arguments[1:]):
        say(help_text.STORAGE.rstrip())
        return exit_status.OK
    if named == "help":
        return run([*arguments[1:], "--help"], environ)
    return _unknown(named)


def _run(name: str, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    if asked_for(arguments):
        say(help_text.of(name).rstrip())
        return exit_status.OK
    try:
        return COMMANDS[name](arguments, environ)
    except OptionsError as error:
        return _misused(name, error)
    except StorageError as error:
        return _failed(name, str(error), getattr(error, "remedy", ""))
    except KeyboardInterrupt:  # not a success: who waits for a backup must not think that there is one
        return _failed(name, "interrupted", help_text.INTERRUPTED[name])


def _misused(name: str, error: OptionsError) -> int:
    count = len(error.problems)
    complain(
        f"clusterregistry storage {name}: {count} problem{'s' if count > 1 else ''} with the command line:",
        *indented(str(problem) for problem in error.problems),
        f"See: clusterregistry storage {name} --help",
    )
    return exit_status.USAGE


def _failed(name: str, message: str, remedy: str) -> int:
    complain(
        f"clusterregistry storage {name}: {message}", f"What to do: {remedy or 'see to the cause and run it again'}"
    )
    return exit_status.STARTUP


def _unknown(name: str) -> int:
    if not name:
        complain("clusterregistry storage: which command?", "", help_text.STORAGE.rstrip())
        return exit_status.USAGE
    near = nearest(name, COMMANDS)
    hint = f" Did you mean {near}?" if near else ""
    complain(
        f'clusterregistry storage: unknown command "{name}".{hint}',
        f"Commands: {', '.join(COMMANDS)}. See: clusterregistry storage --help",
    )
    return exit_status.USAGE
