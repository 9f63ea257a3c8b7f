"""Describes a program for the completion scripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterregistry.cli.options.field import Option


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag. ``metavar`` is empty for a flag without a value; a boolean may have one after ``=``."""

    name: str
    help: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    is_list: bool = False
    """Whether the value is a list with commas."""

    @property
    def spelled(self) -> str:
        return f"-{self.name}" if len(self.name) == 1 else f"--{self.name}"

    @property
    def takes_value(self) -> bool:
        return bool(self.metavar) and not self.is_boolean

    @property
    def is_boolean(self) -> bool:
        return self.metavar == "BOOL"

    @property
    def completes_files(self) -> bool:
        return self.metavar == "FILE"

    @property
    def completes_directories(self) -> bool:
        return self.metavar == "DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command, or the program itself. One of its ``commands`` may follow, or a file where it takes one."""

    name: str
    help: str = ""
    flags: tuple[Flag, ...] = ()
    commands: tuple[Command, ...] = ()
    takes_file: bool = False

    def walk(self, path: str = "") -> Iterator[tuple[str, Command]]:
        """Yields every command with its path, such as ``/storage/backup``; the path of the program is empty."""
        yield path, self
        for each in self.commands:
            yield from each.walk(f"{path}/{each.name}")


HELP = Flag(name="help", help="Show help")
SHORT = Flag(name="short", help="Only the version, for scripts")
SHELLS = ("bash", "zsh", "fish")


def completion_command() -> Command:
    """Returns the command ``completion``, which every program has."""
    return Command(
        name="completion",
        help="print a script by which the shell completes commands and flags",
        flags=(HELP,),
        commands=tuple(Command(name=shell, help=f"for {shell}", flags=(HELP,)) for shell in SHELLS),
    )


def flag_of(option: Option, *, choices: tuple[str, ...] = ()) -> Flag:
    """Returns the flag of an option; ``choices`` are the words that a list may hold."""
    kind = option.details.kind
    return Flag(
        name=option.flag,
        help=option.details.help,
        metavar=kind.metavar if kind.bare is None or kind.metavar == "BOOL" else "",
        choices=choices or kind.choices,
        is_list=bool(choices),
    )


def values_by_flag(program: Command) -> dict[str, list[tuple[str, Flag]]]:
    """Returns every flag that takes a value, by name: for each of its meanings the path of a command, and the flag.

    The path of the first meaning is empty: it is that of all commands without another. Raises ValueError for a flag
    that takes a value behind one command, and none behind another: a word after it would be taken for two things.
    """
    found: dict[str, list[tuple[str, Flag]]] = {}
    for path, command in program.walk():
        for flag in command.flags:
            if flag.metavar:
                _add_meaning(found.setdefault(flag.name, []), path, flag)
    for name, meanings in found.items():
        if len({flag.takes_value for _, flag in meanings}) > 1:
            raise ValueError(f"{meanings[-1][0]} has a --{name} that takes a value unlike the rest of {program.name}")
    return found


def _add_meaning(meanings: list[tuple[str, Flag]], path: str, flag: Flag) -> None:
    if not meanings:
        meanings.append(("", flag))
    elif (meanings[0][1].metavar, meanings[0][1].choices) != (flag.metavar, flag.choices):
        meanings.append((path, flag))


def summary(text: str) -> str:
    """Returns the beginning of a help text that fits beside a flag."""
    sentence = text.replace("`", "").partition(". ")[0].rstrip(".")
    return sentence if len(sentence) <= _MOST_CHARACTERS else f"{sentence[: _MOST_CHARACTERS - 3].rstrip()}..."


_MOST_CHARACTERS = 70
