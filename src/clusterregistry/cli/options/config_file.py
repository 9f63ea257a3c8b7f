"""Reads options from a YAML file: one mapping, each key the name of a flag without the dashes.

A value is the text in the file (``08`` stays ``08``), so that it means the same as on the command line. Lists are
joined with commas. An empty value counts as not given, an empty list as an empty one. Mistakes in the YAML are
described in the terms of the file, not of the parser. ``sources`` imports this module only when a file is named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml import Node, YAMLError
from yaml.error import MarkedYAMLError
from yaml.reader import ReaderError

from clusterregistry.cli.options.field import OptionSet
from clusterregistry.cli.options.problems import Problem
from clusterregistry.cli.options.sources import Given, Reading

MAX_BYTES = 1 << 20


def read(options: OptionSet[Any], path: Path) -> Reading:
    """Reads a file. Never raises: each mistake is in ``problems``, with its line."""
    reading = Reading()
    try:
        text = _text(path)
    except ValueError as error:
        reading.problems.append(Problem("--config", f"{path}: {error}"))
        return reading
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except YAMLError as error:
        reading.problems.append(Problem(str(path), *_explain(error, text)))
    except RecursionError:
        reading.problems.append(Problem(str(path), "this is not YAML: nested too deeply"))
    else:
        _read_root(options, root, path, reading)
    return reading


def _text(path: Path) -> str:
    """Raises ValueError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from None
    if len(content) > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text (byte {error.start})") from None


def _read_root(options: OptionSet[Any], root: Node | None, path: Path, reading: Reading) -> None:
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        what = "the file must be a mapping of options, such as `secure-port: 8443`"
        reading.problems.append(Problem(str(path), what, _mapping_hint(root)))
        return
    lines: dict[str, int] = {}
    for key, value in root.value:
        line = key.start_mark.line + 1
        where = f"{path}:{line}"
        if not isinstance(key, yaml.ScalarNode):
            reading.problems.append(Problem(where, "a key must be the name of a flag"))
        elif key.value in lines:
            reading.problems.append(Problem(where, f"{key.value} is there twice", f"first in line {lines[key.value]}"))
        else:
            lines[key.value] = line
            _read_entry(options, key.value, value, where=where, reading=reading)


def _mapping_hint(root: Node) -> str:
    """Returns what to change in a file whose content is a list or a text."""
    if isinstance(root, yaml.SequenceNode):
        return "this is a list: write options without the dash before them"
    return _option_hint(str(root.value).split(" --")[0])


def _read_entry(options: OptionSet[Any], flag: str, value: Node, *, where: str, reading: Reading) -> None:
    if flag not in options.by_flag:
        reading.refuse_unknown(options, flag, where=f"{flag} in {where}", shown_as=str)
        return
    if flag == "config":
        reading.problems.append(Problem(where, "config: a file cannot name another file"))
        return
    text = _value_text(value)
    if text is None:
        reading.problems.append(Problem(where, f"{flag}: must be a single value or a list of them"))
    elif text or isinstance(value, yaml.SequenceNode):
        reading.given.append(Given(flag, text, f"{where}: {flag}"))


def _value_text(value: Node) -> str | None:
    if isinstance(value, yaml.ScalarNode):
        return "" if value.style is None and value.value in {"", "~", "null"} else str(value.value)
    if isinstance(value, yaml.SequenceNode) and all(isinstance(each, yaml.ScalarNode) for each in value.value):
        return ",".join(each.value for each in value.value)
    return None


_WIDTH = 60
"""Characters of the line that are shown around the mistake."""

_QUOTED = "put the value in quotes"
_JSON = "this looks like JSON: check commas, quotes and braces"
_ASSIGNMENT = re.compile(r"\s*-{0,2}([a-z][a-z0-9-]*)\s*[=\s]\s*(\S.*?)\s*", re.ASCII)
_COLON = re.compile(r":(?=\s|$)")


@dataclass(frozen=True, slots=True)
class _Mistake:
    """A mistake in the YAML: its place (lines and columns from 0), the message, and a hint."""

    line: int
    column: int
    wrong: str
    hint: str = ""


def _explain(error: YAMLError, text: str) -> tuple[str, str]:
    """Returns message and hint for a file that the parser refuses: one short line each, whatever the file holds."""
    lines = text.splitlines() or [""]
    mistake = _mistake(error, lines)
    shown = _shown(lines[mistake.line] if mistake.line < len(lines) else "", mistake.column)
    place = f"line {mistake.line + 1}, column {mistake.column + 1}"
    message = f"this is not YAML: {place}: {mistake.wrong}"
    hint = _JSON if text.lstrip().startswith("{") else mistake.hint
    return (f"{message}: {shown}" if shown else message), hint


def _option_hint(text: str) -> str:
    """Returns how to write an option whose line has no colon; ``""`` when it does not look like an option."""
    found = _ASSIGNMENT.fullmatch(text[: _WIDTH * 2])
    return f"write an option as `{found[1]}: {found[2][:_WIDTH]}`" if found else ""


def _mistake(error: YAMLError, lines: list[str]) -> _Mistake:
    if isinstance(error, ReaderError):
        return _unreadable(error, lines)
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return _Mistake(0, 0, "it cannot be read")
    mark, begun, problem = error.problem_mark, error.context_mark, error.problem or ""
    here = lines[mark.line] if mark.line < len(lines) else ""
    at = (mark.line, mark.column)
    if problem == "could not find expected ':'" and begun is not None:
        return _Mistake(begun.line, begun.column, "a colon is missing", _option_hint(lines[begun.line]))
    if problem.startswith("found character '\\t'") or here[: mark.column + 1].endswith("\t"):
        return _Mistake(*at, "a tab where YAML wants spaces", "indent with spaces; options need no indent at all")
    if problem.startswith("mapping values are not allowed"):
        return _unexpected_colon(at, lines)
    if problem == "found unexpected end of stream" and begun is not None:
        wrong, hint = "a quote is opened and never closed", "close the quote at the end of the value"
        return _Mistake(begun.line, begun.column, wrong, hint)
    if problem.startswith("expected ',' or ") and begun is not None:
        closing = "}" if "flow mapping" in (error.context or "") else "]"
        return _unclosed(at, (begun.line, begun.column), lines, closing=closing)
    if problem.startswith(("found character", "found undefined alias")):
        return _Mistake(*at, f"a value cannot begin with {here[mark.column : mark.column + 1]}", _QUOTED)
    return _out_of_place(at, problem, here)


def _out_of_place(at: tuple[int, int], problem: str, here: str) -> _Mistake:
    """The file ends, or continues, in the wrong place."""
    if "'<stream end>'" in problem:
        return _Mistake(*at, "the file ends too early", "is a value or a bracket missing?")
    if problem.startswith("expected '<document start>'"):
        hint = _option_hint(here) or "write every option as `name: value`"
        return _Mistake(*at, "this does not belong to the lines before it", hint)
    if problem.startswith("but found another document"):
        return _Mistake(*at, "a second document begins", "keep one, and remove the line ---")
    return _Mistake(*at, _plain(problem), "")


def _unreadable(error: ReaderError, lines: list[str]) -> _Mistake:
    hint = "remove it; was the file made by a program that writes no plain text?"
    character = error.character if isinstance(error.character, int) else ord(error.character[:1] or "\0")
    wrong = f"a character that is not text, U+{character:04X}"
    found = ((number, line.find(chr(character))) for number, line in enumerate(lines))
    line, column = next(((line, column) for line, column in found if column >= 0), (0, 0))
    return _Mistake(line, column, wrong, hint)


def _unexpected_colon(at: tuple[int, int], lines: list[str]) -> _Mistake:
    here = lines[at[0]]
    if len(_COLON.findall(here)) > 1:
        return _Mistake(*at, "a second colon in one line", "put the value in quotes, or begin a new line")
    if not here[:1].isspace():  # the lines before it are one open text, since they have no colon
        first = at[0]
        while first and not _COLON.search(lines[first - 1]):
            first -= 1
        return _Mistake(first, 0, "a colon is missing", _option_hint(lines[first]))
    wrong = "this line is indented further than the one before it"
    return _Mistake(*at, wrong, "begin every option at the start of its line")


def _unclosed(at: tuple[int, int], begun: tuple[int, int], lines: list[str], *, closing: str) -> _Mistake:
    """A list or a mapping continues where the parser expects its end: either the end or a comma is missing."""
    if any(closing in line for line in lines[at[0] :]):
        return _Mistake(*at, "a comma is missing before this", "separate the values with commas")
    return _Mistake(*begun, "a bracket is opened and not closed", f"close it with {closing}")


def _plain(problem: str) -> str:
    return " ".join(problem.split())[:_WIDTH] or "it cannot be read"


def _shown(line: str, column: int) -> str:
    """Returns the line in quotes, or the part around a column of a long one, with control characters escaped."""
    if not line.strip():
        return ""
    start = 0 if len(line) <= _WIDTH else max(0, min(column - _WIDTH // 2, len(line) - _WIDTH))
    part = line[start : start + _WIDTH]
    escaped = "".join(_escaped(character) for character in part)
    escaped = escaped[: 2 * _WIDTH]
    return f'"{"..." if start else ""}{escaped}{"..." if start + _WIDTH < len(line) else ""}"'


def _escaped(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    if character == "\t":
        return "\\t"
    return character if character.isprintable() else f"\\u{ord(character):04x}"
