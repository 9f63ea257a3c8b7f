"""The frame of a storage command: its options, its operands and its help.

A command declares its own options as a dataclass, as the server does. Every command also takes those options of the
server that say where the data is; these may also come from the environment and from the configuration file. Operands,
such as a FILE, may stand anywhere between the options.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from clusterregistry.apiserver.options.completion import CompletedOptions, complete
from clusterregistry.apiserver.options.groups import Options
from clusterregistry.apiserver.product import Product
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.location import DATABASE
from clusterregistry.cli import logs
from clusterregistry.cli.options.field import OptionSet
from clusterregistry.cli.options.general import GeneralOptions
from clusterregistry.cli.options.help import help_text
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.sources import Reading, read_flags, resolve
from clusterregistry.cli.options.value_types import FILE
from clusterregistry.cli.subcommand import Operands

T = TypeVar("T")

SERVER_FLAGS = ("config", "data-dir", "v")
"""The options of the server that every command takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine(Generic[T]):
    """The command's own options, its operands, and the server's options that say where the data is."""

    own: T
    operands: tuple[Path, ...]
    server: CompletedOptions

    @property
    def data_dir(self) -> Path:
        return self.server.data_dir

    @property
    def database(self) -> Path:
        """The file of the server. Raises StorageUnavailable when the server uses etcd."""
        if self.server.etcd is not None:
            raise StorageUnavailable(
                f"this registry keeps its objects in {self.server.etcd.shown}, not in a file",
                remedy="use etcd's own tools, such as `etcdctl snapshot save FILE`, or `storage copy`",
            )
        return self.data_dir / DATABASE

    @property
    def file(self) -> Path:
        """The file that is named, or else that of the server."""
        return self.operands[0] if self.operands else self.database


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageCommand(Generic[T]):
    """One storage command: its help, the dataclass of its own options, and the function that runs it."""

    name: str
    summary: str
    help: str
    own: type[T]
    server_flags: tuple[str, ...] = SERVER_FLAGS
    operands: Operands
    interrupted: str
    """What to do after an interrupt."""
    run: Callable[[Sequence[str], Mapping[str, str], Product], int]

    def options(self, server: OptionSet[Options]) -> OptionSet[T]:
        """Returns the command's own options, and those of the server that it takes."""
        borrowed = tuple(server.by_flag[flag] for flag in self.server_flags)
        return OptionSet(shape=self.own, borrowed=borrowed, vocabulary=server.vocabulary)

    def help_text(self, server: OptionSet[Options]) -> str:
        flags = help_text(self.options(server).by_flag.values(), 110)
        return f"{server.name_program(self.help)}\nFlags:\n{flags}\n"

    def read(self, arguments: Sequence[str], environ: Mapping[str, str], server: OptionSet[Options]) -> CommandLine[T]:
        """Reads a command line and sets up logging. Raises OptionsError with every mistake."""
        options, most = self.options(server), self.operands.most
        reading = read_flags(options, arguments, most_operands=most)
        problems = list(reading.problems)
        files = tuple(file for each in reading.operands[:most] for file in _file(each, problems))
        if len(reading.operands) < self.operands.least:
            problems.append(Problem("", self.operands.missing))
        of_server = [each for each in reading.given if each.flag in self.server_flags]
        own = resolve(options, Reading([each for each in reading.given if each not in of_server]), {})
        resolved = resolve(server, Reading(of_server), environ)
        problems += (*own.problems, *resolved.problems)
        try:
            # The rules of the server for storage alone: a missing serving certificate does not matter here.
            read = resolved.options
            given = Options(general=read.general, storage=read.storage, product=read.product)
            completed = complete(given, environ, program=server.program)
        except OptionsError as error:
            raise OptionsError([*problems, *error.problems]) from None
        if problems:
            raise OptionsError(problems)
        _configure_logging(resolved.options.general, server.program)
        return CommandLine(own=own.options, operands=files, server=completed)


def _file(text: str, problems: list[Problem]) -> Iterable[Path]:
    """Yields an operand as a file, or notes what is wrong with it."""
    try:
        file = FILE.parse(text) if text.strip() else None
    except ValueError as error:
        problems.append(Problem("", str(error)))
        return
    if file is None:
        problems.append(Problem("", "an empty name is no file"))
        return
    yield file.absolute()


def _configure_logging(general: GeneralOptions, program: str) -> None:
    """A command prints its own results: the log of the layers below is for -v."""
    logs.configure(general, program)
    if not general.v:
        logging.getLogger("clusterregistry").setLevel(logging.WARNING)
