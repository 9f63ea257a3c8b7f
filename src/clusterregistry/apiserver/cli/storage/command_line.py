"""Reads the command line of a storage command.

A command declares its own options as a dataclass, as the server does. Beside them every command knows those options
of the server that say where the data is; they may also come from the environment and from the configuration file.
Operands, such as a FILE, may stand anywhere between the options.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from clusterregistry.apiserver.options import synonyms
from clusterregistry.apiserver.options.completion import CompletedOptions, complete
from clusterregistry.apiserver.options.groups import Options, OptionSet
from clusterregistry.apiserver.options.resolution import resolve
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.location import DATABASE
from clusterregistry.cli import logs
from clusterregistry.cli.options.field import Option, options_of
from clusterregistry.cli.options.general import GeneralOptions
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import FILE

T = TypeVar("T")

SERVER_FLAGS = ("config", "data-dir", "v")
"""The server's options that every command knows."""

ALIASES = {"o": "output", "from": "source", "to": "target"}
"""Flags that cannot be the name of a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine(Generic[T]):
    """What was asked for: a command's own options, its operands, and the server's options that tell where data is."""

    own: T
    operands: tuple[Path, ...]
    server: CompletedOptions

    @property
    def data_dir(self) -> Path:
        return self.server.data_dir

    @property
    def database(self) -> Path:
        """The server's file. Raises StorageUnavailable when it has none."""
        if self.server.etcd is not None:
            raise StorageUnavailable(
                f"this registry keeps its objects in {self.server.etcd.shown}, not in a file",
                remedy="use etcd's own tools, such as `etcdctl snapshot save FILE`, or `storage copy`",
            )
        return self.data_dir / DATABASE

    @property
    def file(self) -> Path:
        """The one that is named, or else the server's."""
        return self.operands[0] if self.operands else self.database


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """How many files a command takes, and what to say when they are not there."""

    least: int = 0
    most: int = 0
    missing: str = ""


def read(  # noqa: PLR0913 - half of them by keyword
    arguments: Sequence[str],
    environ: Mapping[str, str],
    known: OptionSet,
    *,
    own: type[T],
    operands: Operands,
    server_flags: Sequence[str] = SERVER_FLAGS,
) -> CommandLine[T]:
    """Takes a command line apart and sets up logging. Raises OptionsError with all that is wrong."""
    reader = _Reader(
        own={each.flag: each for each in options_of(own)}, server={flag: known.by_flag[flag] for flag in server_flags}
    )
    reader.read(arguments)
    files = tuple(reader.files(operands))
    resolved = resolve(reader.for_server, environ, known)
    problems = [*reader.problems, *resolved.problems]
    try:
        server = _completed(resolved.options, environ, program=known.program)
    except OptionsError as error:
        raise OptionsError([*problems, *error.problems]) from None
    if problems:
        raise OptionsError(problems)
    _configure_logging(resolved.options.general)
    return CommandLine(own=own(**reader.values), operands=files, server=server)


def _configure_logging(general: GeneralOptions) -> None:
    """A command answers in its own words: what the layers below tell the log is for those who ask."""
    logs.configure(general)
    if not general.v:
        logging.getLogger("clusterregistry").setLevel(logging.WARNING)


def _completed(options: Options, environ: Mapping[str, str], *, program: str) -> CompletedOptions:
    """The server's own rules, but for storage alone: a serving certificate that is missing is no matter here."""
    return complete(Options(general=options.general, storage=options.storage), environ, program=program)


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Sorts the arguments: own options, options of the server, operands, and mistakes."""

    own: Mapping[str, Option]
    server: Mapping[str, Option]
    values: dict[str, Any] = field(default_factory=dict)
    for_server: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def read(self, arguments: Sequence[str]) -> None:
        rest = list(reversed(arguments))
        while rest:
            argument = rest.pop()
            if argument == "--":
                self.operands += reversed(rest)
                return
            if argument.startswith("-") and argument != "-":
                self._flag(argument, rest)
            else:
                self.operands.append(argument)

    def files(self, wanted: Operands) -> list[Path]:
        """The operands as files; what is wrong with them is a problem like all others."""
        if len(self.operands) < wanted.least:
            self.problems.append(Problem("", wanted.missing))
        for each in self.operands[wanted.most :]:
            self.problems.append(Problem("", f'unexpected argument "{each}"'))
        return [file for each in self.operands[: wanted.most] for file in self._file(each)]

    def _file(self, text: str) -> list[Path]:
        try:
            file = FILE.parse(text) if text.strip() else None
        except ValueError as error:
            self.problems.append(Problem("", str(error)))
            return []
        if file is None:
            self.problems.append(Problem("", "an empty name is no file"))
            return []
        return [file.absolute()]

    def _flag(self, argument: str, rest: list[str]) -> None:
        shown, equals, text = argument.partition("=")
        typed = shown.lstrip("-")
        flag = ALIASES.get(typed, typed)
        option = self.own.get(flag) or self.server.get(flag)
        if option is None:
            self._unknown(shown, typed, rest, has_value=bool(equals))
            return
        value = text if equals else _following_value(option, rest)
        if value is None:
            self.problems.append(Problem(shown, "needs a value", f"{shown}={option.details.kind.metavar}"))
        elif flag in self.own:
            self._take(option, value, where=shown)
        else:
            self.for_server.append(f"--{flag}={value}")

    def _take(self, option: Option, text: str, *, where: str) -> None:
        try:
            self.values[option.field] = option.details.kind.parse(text)
        except ValueError as error:
            self.problems.append(Problem(where, str(error)))

    def _unknown(self, shown: str, typed: str, rest: list[str], *, has_value: bool) -> None:
        known = {**{shown_flag(flag): option for flag, option in self.own.items()}, **self.server}
        self.problems.append(Problem("", f"unknown option {shown}", synonyms.hint(typed, known)))
        meant = known.get(synonyms.meant(typed, known))
        if meant is not None and not has_value:
            _following_value(meant, rest)  # belongs to the mistake that is named already


def shown_flag(flag: str) -> str:
    """The name that people use for an option of a command."""
    return next((alias for alias, named in ALIASES.items() if named == flag and len(alias) > 1), flag)


def _following_value(option: Option, rest: list[str]) -> str | None:
    kind = option.details.kind
    if kind.bare is not None:
        return rest.pop() if rest and kind.takes_next(rest[-1]) else kind.bare
    # A value that begins with two dashes is more likely the next flag after a forgotten value.
    return rest.pop() if rest and not rest[-1].startswith("--") else None
