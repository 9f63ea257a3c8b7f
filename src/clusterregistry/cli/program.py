"""The frame of every program: finds the command, answers --help, reports failures and chooses the exit status."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status, logs
from clusterregistry.cli.console import complain, indented, say, with_program
from clusterregistry.cli.options.problems import OptionsError, nearest

Command = Callable[[Sequence[str], Mapping[str, str]], int]
"""Runs with the arguments after its name and the environment, and returns the exit status."""

_log = logging.getLogger(__name__)


class Length(StrEnum):
    """How much help a command line asks for."""

    NONE = ""
    SHORT = "short"
    ALL = "all"


_SHORT = frozenset({"-h", "--help", "-help"})
_ALL = frozenset(f"{spelling}=all" for spelling in _SHORT)
HELP_WORDS = frozenset({*_SHORT, "--help=all", "help"})
"""First arguments that ask a program for help."""


def asked_for(arguments: Sequence[str]) -> Length:
    """Returns how much help a command line asks for; the flag may stand anywhere in it."""
    if _ALL.intersection(arguments):
        return Length.ALL
    return Length.SHORT if _SHORT.intersection(arguments) else Length.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program, or a command with commands of its own.

    ``name`` is what users type, such as ``clusterregistry storage``; ``help`` is the text of --help.
    """

    name: str
    help: str
    commands: Mapping[str, Command]

    def main(self, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
        """Runs one command and returns the exit status. Never raises; an interrupt ends the program with 0."""
        try:
            return guard(self.name, lambda: self.run(arguments, environ))
        except KeyboardInterrupt:
            return exit_status.OK

    def run(self, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
        """Runs one command and returns the exit status. Raises what the command raises."""
        if not arguments:
            complain(f"{self.name}: which command?", "", self.help.rstrip())
            return exit_status.USAGE
        name, rest = arguments[0], arguments[1:]
        if name in HELP_WORDS:
            return self._show_help(rest, environ)
        command = self.commands.get("version" if name == "--version" else name)
        return command(rest, environ) if command else self._refuse(name)

    def _show_help(self, about: Sequence[str], environ: Mapping[str, str]) -> int:
        """``help``, ``help COMMAND``, and ``help COMMAND all`` for every flag."""
        if about and about[0] in self.commands:
            flag = "--help=all" if {"all", "--all"}.intersection(about) else "--help"
            rest = [each for each in about[1:] if each not in {"all", "--all"}]
            return self.commands[about[0]]([*rest, flag], environ)
        if about and about[0] not in HELP_WORDS:
            return self._refuse(about[0])
        say(self.help.rstrip())
        return exit_status.OK

    def _refuse(self, name: str) -> int:
        near = nearest(name, self.commands)
        hint = f" Did you mean {near}?" if near else ""
        complain(
            f'{self.name}: unknown command "{name}".{hint}',
            f"Commands: {', '.join(self.commands)}. See: {self.name} --help",
        )
        return exit_status.USAGE


def guard(name: str, work: Callable[[], int]) -> int:
    """Runs ``work`` and returns its exit status; every exception becomes a report and an exit status.

    An unexpected exception is a bug: its traceback goes to the log, and to users only with -v.
    """
    try:
        return work()
    except OptionsError as error:
        return report_usage(name, error)
    except OperatorError as error:
        return report_failure(name, error)
    except Exception as error:  # noqa: BLE001 - users see no traceback
        if logs.are_json():
            _log.critical("unexpected failure: this is a bug in %s", name, exc_info=True)
            return exit_status.STARTUP
        _log.debug("the traceback of the unexpected failure", exc_info=True)
        complain(
            f"{name}: unexpected {type(error).__name__}: {error}",
            f"What to do: this is a bug in {name}: report it, with the output of -v where the command has it.",
        )
        return exit_status.STARTUP


def report_usage(name: str, error: OptionsError, *, subject: str = "command line") -> int:
    """Prints every mistake in the options of a command, and returns the exit status."""
    count = len(error.problems)
    complain(
        f"{name}: {count} problem{'s' if count > 1 else ''} with the {subject}:",
        *indented(with_program(str(problem), _program(name)) for problem in error.problems),
        f"See: {name} --help",
    )
    return exit_status.USAGE


def report_failure(name: str, error: OperatorError) -> int:
    """Prints what failed and what to do, or logs both where the log is JSON; returns the exit status."""
    remedy = with_program(error.remedy or "correct the cause and run the command again", _program(name))
    if logs.are_json():
        _log.error("%s. What to do: %s", error, remedy)
    else:
        complain(f"{name}: {error}", f"What to do: {remedy}")
    return exit_status.STARTUP


def _program(name: str) -> str:
    """The program of a command, such as ``clusterregistry storage``."""
    return name.partition(" ")[0]
