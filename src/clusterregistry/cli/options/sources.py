"""Reads options from the command line, the environment and the configuration file, and combines them.

A flag counts before the environment variable, that before the file, that before the default. Every source yields text;
the ``Kind`` of an option is the only place that parses it. Nothing here raises: all mistakes are collected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from clusterregistry.cli.options.field import Option, OptionSet
from clusterregistry.cli.options.problems import Problem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resolved(Generic[T]):
    """The options, and the mistakes in what was given. A bad value leaves the default in place.

    ``sources`` says by field where a value comes from, such as ``flag --secure-port``; defaults are not in it.
    """

    options: T
    problems: tuple[Problem, ...]
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Given:
    """A value as text, and its place: ``--secure-port``, an environment variable, ``file:3``."""

    flag: str
    text: str
    where: str


@dataclass(slots=True)
class Reading:
    """What one source gives: values, operands (command line only), and mistakes."""

    given: list[Given] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def refuse_unknown(
        self,
        options: OptionSet[Any],
        flag: str,
        *,
        where: str,
        shown_as: Callable[[str], str] = "--{}".format,
        besides: Sequence[str] = (),
    ) -> None:
        """Notes a name that no option has. ``besides`` are further names that this source knows."""
        vocabulary = options.vocabulary
        if flag in vocabulary.unsupported:
            self.problems.append(Problem("", f"{where} is not supported yet", vocabulary.unsupported[flag]))
            return
        known = (*options.by_flag, *vocabulary.unsupported, *besides)
        self.problems.append(Problem("", f"unknown option {where}", vocabulary.hint(flag, known, shown_as=shown_as)))


def resolve(
    options: OptionSet[T], flags: Reading, environ: Mapping[str, str], *, defaults: Mapping[str, Any] | None = None
) -> Resolved[T]:
    """Combines a command line, an environment, and the file that either of them names.

    ``defaults`` are those of a command that has others, by field. A mistake is reported also where a stronger source
    overrides the value: it would have an effect as soon as that source is gone.
    """
    problems: list[Problem] = []
    values: dict[str, Any] = dict(defaults or {})
    sources: dict[str, str] = {}
    # Weaker sources come first, so that stronger ones overwrite them. The stronger ones name the file.
    stronger = [read_environment(options, environ), flags]
    readings = (_read_named_file(options, stronger), *stronger)
    for source, reading in zip(("file", "environment", "flag"), readings, strict=True):
        problems.extend(reading.problems)
        seen: set[str] = set()
        for given in reading.given:
            chosen = options.by_flag[given.flag]
            _take(chosen, given, values, problems, again=given.flag in seen)
            sources[chosen.field] = f"{source} {given.where.removesuffix(f': {given.flag}')}"
            seen.add(given.flag)
    return Resolved(options.build(values), tuple(problems), sources)


def _read_named_file(options: OptionSet[Any], readings: Sequence[Reading]) -> Reading:
    named = [given.text for reading in readings for given in reading.given if given.flag == "config" and given.text]
    if not named:
        return Reading()
    try:
        path: Path | None = options.by_flag["config"].details.kind.parse(named[-1])
    except ValueError:
        return Reading()  # reported with the flag or the variable
    if path is None:
        return Reading()
    from clusterregistry.cli.options import config_file  # noqa: PLC0415 - loads the YAML parser

    return config_file.read(options, path)


def _take(chosen: Option, given: Given, values: dict[str, Any], problems: list[Problem], *, again: bool) -> None:
    kind = chosen.details.kind
    if not given.text and kind.empty_is_default:
        values[chosen.field] = chosen.default  # --token-auth-file= takes back the value of a weaker source
        return
    before = values.get(chosen.field, ()) if again and kind.repeatable else ()
    try:
        value = kind.parse(given.text)
        values[chosen.field] = (*before, *value) if before else value
    except ValueError as error:
        problems.append(Problem(given.where, str(error)))


def read_flags(options: OptionSet[Any], arguments: Sequence[str], *, most_operands: int = 0) -> Reading:
    """Reads a command line the way Go programs do.

    ``--flag=value``, ``--flag value``, ``--boolean``, ``--boolean=false``; one dash does as well; ``--`` ends the
    flags; a repeated flag counts in its last place, unless its kind is repeatable. Operands may stand anywhere.
    """
    return _CommandLine(options, arguments, most_operands).read()


class _CommandLine:
    def __init__(self, options: OptionSet[Any], arguments: Sequence[str], most_operands: int) -> None:
        self._options, self._most_operands = options, most_operands
        self._rest = list(reversed(arguments))
        self._reading = Reading()

    def read(self) -> Reading:
        flags_ended = False
        while self._rest:
            argument = self._rest.pop()
            if flags_ended or not argument.startswith("-") or argument == "-":
                self._read_operand(argument)
            elif argument == "--":
                flags_ended = True
            else:
                self._read_flag(argument)
        return self._reading

    def _read_operand(self, argument: str) -> None:
        self._reading.operands.append(argument)
        if len(self._reading.operands) > self._most_operands:
            hint = "a boolean is written --flag=false" if argument.lower() in {"true", "false"} else ""
            self._reading.problems.append(Problem("", f'unexpected argument "{argument}"', hint))

    def _read_flag(self, argument: str) -> None:
        typed, equals, text = argument.partition("=")
        name = typed.lstrip("-")
        chosen = self._options.find(name)
        if chosen is None:
            self._refuse(argument, name, has_value=bool(equals))
            return
        where = f"-{name}" if name == chosen.details.short != chosen.flag else f"--{chosen.flag}"
        value = text if equals else self._following_value(chosen)
        if value is None:
            self._reading.problems.append(Problem(where, "needs a value", f"{where}={chosen.details.kind.metavar}"))
        else:
            self._reading.given.append(Given(chosen.flag, value, where))

    def _following_value(self, chosen: Option) -> str | None:
        kind = chosen.details.kind
        return self._rest.pop() if self._rest and kind.takes_next(self._rest[-1]) else kind.bare

    def _refuse(self, argument: str, name: str, *, has_value: bool) -> None:
        """Notes an unknown flag, and skips its value: one flag is one mistake."""
        options = self._options
        if name in {"h", "help"} and "help" in options.command_line_only:  # --help and --help=all never get here
            hint = "--help is short, --help=all shows every flag"
            self._reading.problems.append(Problem("", f"unknown option {argument}", hint))
            return
        besides = options.command_line_only
        self._reading.refuse_unknown(options, name, where=argument.partition("=")[0], besides=besides)
        if has_value or not self._rest or self._rest[-1].startswith("-"):
            return
        meant = options.by_flag.get(options.vocabulary.nearest_flag(name, options.by_flag))
        if len(self._reading.operands) >= self._most_operands:
            self._rest.pop()
        elif meant is not None:
            self._following_value(meant)


_SERVICE_LINK = re.compile(
    r"\w*(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)", re.ASCII
)
_SERVICE_URL = re.compile(r"(tcp|udp|sctp)://")


def read_environment(options: OptionSet[Any], environ: Mapping[str, str]) -> Reading:
    """Reads the environment variables with the prefix of the options: ``PREFIX_SECURE_PORT`` is ``--secure-port``.

    An empty variable counts as not set. An unknown variable with the prefix is a mistake, except for those that
    Kubernetes puts into a pod for a Service whose name begins with the prefix.
    """
    reading, prefix = Reading(), options.environment_prefix
    if not prefix:
        return reading
    for variable, text in sorted(environ.items()):
        if not variable.startswith(prefix) or variable in options.not_options or not text:
            continue
        name = variable.removeprefix(prefix)
        if _is_service_link(name, text):
            continue
        flag = name.lower().replace("_", "-")
        if flag in options.by_flag and options.variable(flag) == variable:
            reading.given.append(Given(flag, text, variable))
        else:
            reading.refuse_unknown(options, flag, where=variable, shown_as=options.variable)
    return reading


def _is_service_link(name: str, text: str) -> bool:
    if _SERVICE_LINK.fullmatch(name):
        return True
    return (name == "PORT" or name.endswith("_PORT")) and _SERVICE_URL.match(text) is not None
