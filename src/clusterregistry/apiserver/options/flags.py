"""Reads a command line the way Go programs do.

``--flag=value``, ``--flag value``, ``--boolean``, ``--boolean=false``; a single dash does as well; ``--`` ends the
flags; a repeated flag counts in its last place, unless its kind says that all of them count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clusterregistry.apiserver.options.groups import OptionSet
from clusterregistry.apiserver.options.unsupported import INSTEAD, PLANNED
from clusterregistry.cli.options.field import Option
from clusterregistry.cli.options.problems import Problem

COMMAND_LINE_ONLY = ("help", "print-config")
"""Flags that say what to do instead of serving: neither the environment nor a file can give them."""

_HELP = frozenset({"h", "help"})


@dataclass(frozen=True, slots=True)
class Given:
    """A value as somebody wrote it, and where: ``--secure-port``, its environment variable, ``file:3``."""

    flag: str
    text: str
    where: str


@dataclass(slots=True)
class Reading:
    """What a source gave, and what was wrong with it."""

    known: OptionSet
    given: list[Given] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def refuse_unknown(
        self, flag: str, *, where: str, shown_as: Callable[[str], str] = "--{}".format, besides: Sequence[str] = ()
    ) -> None:
        """Notes a name that no option has: one that is promised, or one that is wrong, with what was meant.

        ``besides`` are names that are known where this one was given, beside those of the options.
        """
        if flag in PLANNED:
            hint = INSTEAD.get(flag, "")
            self.problems.append(Problem("", f"{where} is not supported yet", hint))
            return
        from clusterregistry.apiserver.options import synonyms  # noqa: PLC0415 - only for mistakes

        hint = synonyms.hint(flag, (*self.known.by_flag, *PLANNED, *besides), shown_as=shown_as)
        self.problems.append(Problem("", f"unknown option {where}", hint))


def read(arguments: Sequence[str], known: OptionSet) -> Reading:
    """Takes a command line apart. Never raises: what is wrong is in ``problems``."""
    reading = Reading(known)
    rest = list(reversed(arguments))
    while rest:
        argument = rest.pop()
        if argument == "--":
            reading.problems.extend(_unexpected(each) for each in reversed(rest))
            break
        if not argument.startswith("-") or argument == "-":
            reading.problems.append(_unexpected(argument))
            continue
        _read_flag(argument, rest, reading)
    return reading


def _read_flag(argument: str, rest: list[str], reading: Reading) -> None:
    flag, equals, text = argument.lstrip("-").partition("=")
    option = reading.known.by_flag.get(flag)
    if flag in _HELP:  # with a value that is not known: all others are answered before
        reading.problems.append(
            Problem("", f"unknown option {argument}", "--help is short, --help=all shows every flag")
        )
        return
    if option is None:
        if not equals and rest and not rest[-1].startswith("-"):
            rest.pop()  # its value, since there are no other arguments: one complaint about a flag is enough
        reading.refuse_unknown(flag, where=argument.partition("=")[0], besides=COMMAND_LINE_ONLY)
        return
    value = text if equals else _following_value(option, rest)
    if value is None:
        reading.problems.append(Problem(f"--{flag}", "needs a value", f"--{flag}={option.details.kind.metavar}"))
        return
    reading.given.append(Given(flag, value, f"--{flag}"))


def _following_value(option: Option, rest: list[str]) -> str | None:
    kind = option.details.kind
    if kind.bare is not None:
        return rest.pop() if rest and kind.takes_next(rest[-1]) else kind.bare
    # A value that begins with two dashes is more likely the next flag after a forgotten value.
    return rest.pop() if rest and not rest[-1].startswith("--") else None


def _unexpected(argument: str) -> Problem:
    hint = "a boolean is written --flag=false" if argument.lower() in {"true", "false"} else ""
    return Problem("", f'unexpected argument "{argument}"', hint)
