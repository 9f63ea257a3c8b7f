"""A command that a program brings: its options, its operands and its help, each stated once.

A program lists its commands by name and summary, and loads a command only when it is called: a server that starts does
not wait for the modules of its other commands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from clusterregistry.cli import exit_status, logs
from clusterregistry.cli.console import say
from clusterregistry.cli.options.field import OptionSet
from clusterregistry.cli.options.general import GeneralOptions
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.sources import read_flags, resolve
from clusterregistry.cli.program import Command as Run
from clusterregistry.cli.program import Program, asked_for, guard

if TYPE_CHECKING:
    from clusterregistry.cli.completion.model import Command as Described

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """How many words a command takes besides its flags, and the message when some are missing."""

    least: int = 0
    most: int = 0
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given(Generic[T]):
    """What a command was called with. ``flags`` are the names of the flags that stood on the command line."""

    options: T
    operands: tuple[str, ...]
    environ: Mapping[str, str]
    flags: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subcommand(Generic[T]):
    """A command: ``help`` is the text above its flags; ``run`` returns the exit status.

    ``run`` raises OperatorError for what an operator can correct, and OptionsError for mistakes in the command line
    that show only when options are looked at together. Where the options are ``GeneralOptions``, too, the log is
    configured before it is called.
    """

    help: str
    options: OptionSet[T]
    operands: Operands = Operands()
    run: Callable[[Given[T]], int]

    def call(self, name: str, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
        """Runs the command, or prints its help. Failures become reports under ``name``, and exit statuses."""
        if asked_for(arguments):
            say(self.options.name_program(self.help).rstrip(), "", "Flags:", self._flags())
            return exit_status.OK
        return guard(name, lambda: self.run(self._read(arguments, environ)))

    def _flags(self) -> str:
        from clusterregistry.cli.options.help import help_text, terminal_width  # noqa: PLC0415 - only for --help

        return help_text(self.options.by_flag.values(), terminal_width())

    def _read(self, arguments: Sequence[str], environ: Mapping[str, str]) -> Given[T]:
        reading = read_flags(self.options, arguments, most_operands=self.operands.most)
        resolved = resolve(self.options, reading, environ)
        problems = [*reading.problems, *resolved.problems]
        if len(reading.operands) < self.operands.least:
            problems.append(Problem("", self.operands.missing))
        if problems:
            raise OptionsError(list(dict.fromkeys(problems)))
        if isinstance(resolved.options, GeneralOptions):
            logs.configure(resolved.options, self.options.program)
        return Given(
            options=resolved.options,
            operands=tuple(reading.operands),
            environ=environ,
            flags=frozenset(each.flag for each in reading.given),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A command in the list of a program. ``load`` imports and returns it; or it has ``commands`` of its own."""

    name: str
    summary: str
    load: Callable[[], Subcommand[Any]] | None = None
    commands: tuple[Listed, ...] = ()
    help: str = ""
    """The text above the list of commands, for one with commands of its own."""
    is_service: bool = False
    """It runs until it is told to end: an interrupt is no failure."""

    def command(self, program: str) -> Run:
        """The command as a program calls it; ``program`` is what stands before its name."""
        return partial(self._call, f"{program} {self.name}")

    def _call(self, name: str, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
        if self.load is not None:
            return self._run(self.load, name, arguments, environ)
        listed = "\n".join(list_lines(self.commands))
        text = f"{self.help.rstrip()}\n\nUsage:\n  {name} COMMAND [flags]\n\nCommands:\n{listed}\n"
        commands = {each.name: each.command(name) for each in self.commands}
        return Program(name=name, help=text, commands=commands).run(arguments, environ)

    def _run(
        self, load: Callable[[], Subcommand[Any]], name: str, arguments: Sequence[str], environ: Mapping[str, str]
    ) -> int:
        try:
            return load().call(name, arguments, environ)
        except KeyboardInterrupt:
            if self.is_service:
                raise
            return exit_status.INTERRUPTED

    def described(self) -> Described:
        """The command for the completion scripts."""
        from clusterregistry.cli.completion.model import HELP, Command, flag_of  # noqa: PLC0415 - only for these

        if self.load is None:
            commands = tuple(each.described() for each in self.commands)
            return Command(name=self.name, help=self.summary, flags=(HELP,), commands=commands)
        loaded = self.load()
        flags = tuple(flag_of(each) for each in loaded.options.by_flag.values())
        takes_file = loaded.operands.most > 0
        return Command(name=self.name, help=self.summary, flags=(HELP, *flags), takes_file=takes_file)


def list_lines(commands: Sequence[Listed]) -> list[str]:
    """The lines of a help text that list commands."""
    return [f"  {each.name:<11}  {each.summary}" for each in commands]
