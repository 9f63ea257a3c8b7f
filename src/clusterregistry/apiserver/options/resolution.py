"""Brings the sources together: flag before environment before file before default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterregistry.apiserver.options import config_file, environment, flags
from clusterregistry.apiserver.options.flags import Given, Reading
from clusterregistry.apiserver.options.groups import Options, OptionSet
from clusterregistry.cli.options.field import Option
from clusterregistry.cli.options.problems import Problem


@dataclass(frozen=True, slots=True)
class Resolved:
    """Options, and what was wrong with what was given. A bad value leaves its default in place.

    ``sources`` says by field where a value comes from, such as ``flag --secure-port``; defaults are not in it.
    """

    options: Options
    problems: tuple[Problem, ...]
    sources: Mapping[str, str]


def resolve(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    known: OptionSet,
    *,
    defaults: Mapping[str, Any] | None = None,
) -> Resolved:
    """The options of a command line, an environment, and the file that either of them names. Never raises.

    ``defaults`` are those of a command that has others, by field.

    Every unknown name and every bad value is a problem, also one that a stronger source overrides: it would bite
    later.
    """
    problems: list[Problem] = []
    values: dict[str, Any] = dict(defaults or {})
    sources: dict[str, str] = {}
    # The weaker come first, so that the stronger overwrite them. The file is the weakest, but which one it is the
    # others say.
    stronger = [environment.read(environ, known), flags.read(arguments, known)]
    for source, reading in zip(
        ("file", "environment", "flag"), (_file_named_by(stronger, known), *stronger), strict=True
    ):
        problems.extend(reading.problems)
        seen: set[str] = set()
        for given in reading.given:
            _take(known.by_flag[given.flag], given, values, problems, again=given.flag in seen)
            sources[known.by_flag[given.flag].field] = f"{source} {given.where.removesuffix(f': {given.flag}')}"
            seen.add(given.flag)
    return Resolved(known.options(values), tuple(problems), sources)


def _file_named_by(readings: Sequence[Reading], known: OptionSet) -> Reading:
    named = [given.text for reading in readings for given in reading.given if given.flag == "config" and given.text]
    if not named:
        return Reading(known)
    try:
        path: Path | None = known.by_flag["config"].details.kind.parse(named[-1])
    except ValueError:
        return Reading(known)  # reported where the value was given
    return config_file.read(path, known) if path else Reading(known)


def _take(option: Option, given: Given, values: dict[str, Any], problems: list[Problem], *, again: bool) -> None:
    if not given.text and option.details.kind.empty_is_default:
        values[option.field] = option.default  # --token-auth-file= takes back what a weaker source gave
        return
    before = values.get(option.field, ()) if again and option.details.kind.repeatable else ()
    try:
        value = option.details.kind.parse(given.text)
        values[option.field] = (*before, *value) if before else value
    except ValueError as error:
        problems.append(Problem(given.where, str(error)))
