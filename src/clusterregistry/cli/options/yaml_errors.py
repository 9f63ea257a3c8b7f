"""What is wrong with a file that is not YAML, in the words of whoever wrote it rather than in those of the parser."""

from __future__ import annotations

import re
from dataclasses import dataclass

from yaml import YAMLError
from yaml.error import MarkedYAMLError
from yaml.reader import ReaderError

_WIDTH = 60
"""Characters of the line that are shown, around what is wrong in it."""

_QUOTED = "put the value in quotes"
_JSON = "this looks like JSON: check commas, quotes and braces"
_ASSIGNMENT = re.compile(r"\s*-{0,2}([a-z][a-z0-9-]*)\s*[=\s]\s*(\S.*?)\s*", re.ASCII)
_COLON = re.compile(r":(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Mistake:
    """Where the file stops being YAML (lines and columns from 0), what is wrong there, and what to do."""

    line: int
    column: int
    wrong: str
    hint: str = ""


def explain(error: YAMLError, text: str) -> tuple[str, str]:
    """The message and the hint for a file that the parser refuses. One line each, and short whatever the file is."""
    lines = text.splitlines() or [""]
    mistake = _mistake(error, lines)
    shown = _shown(lines[mistake.line] if mistake.line < len(lines) else "", mistake.column)
    place = f"line {mistake.line + 1}, column {mistake.column + 1}"
    message = f"this is not YAML: {place}: {mistake.wrong}"
    hint = _JSON if text.lstrip().startswith("{") else mistake.hint
    return (f"{message}: {shown}" if shown else message), hint


def option_hint(text: str) -> str:
    """How to write an option whose line has no colon; ``""`` when it does not look like an option."""
    found = _ASSIGNMENT.fullmatch(text[: _WIDTH * 2])
    return f"write an option as `{found[1]}: {found[2][:_WIDTH]}`" if found else ""


def _mistake(error: YAMLError, lines: list[str]) -> Mistake:
    if isinstance(error, ReaderError):
        return _unreadable(error, lines)
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return Mistake(0, 0, "it cannot be read")
    mark, begun, problem = error.problem_mark, error.context_mark, error.problem or ""
    here = lines[mark.line] if mark.line < len(lines) else ""
    at = (mark.line, mark.column)
    if problem == "could not find expected ':'" and begun is not None:
        return Mistake(begun.line, begun.column, "a colon is missing", option_hint(lines[begun.line]))
    if problem.startswith("found character '\\t'") or here[: mark.column + 1].endswith("\t"):
        return Mistake(*at, "a tab where YAML wants spaces", "indent with spaces; options need no indent at all")
    if problem.startswith("mapping values are not allowed"):
        return _unexpected_colon(at, lines)
    if problem == "found unexpected end of stream" and begun is not None:
        wrong, hint = "a quote is opened and never closed", "close the quote at the end of the value"
        return Mistake(begun.line, begun.column, wrong, hint)
    if problem.startswith("expected ',' or ") and begun is not None:
        closing = "}" if "flow mapping" in (error.context or "") else "]"
        return _unclosed(at, (begun.line, begun.column), lines, closing=closing)
    if problem.startswith(("found character", "found undefined alias")):
        return Mistake(*at, f"a value cannot begin with {here[mark.column : mark.column + 1]}", _QUOTED)
    return _out_of_place(at, problem, here)


def _out_of_place(at: tuple[int, int], problem: str, here: str) -> Mistake:
    """The file ends, or goes on, where it should not."""
    if "'<stream end>'" in problem:
        return Mistake(*at, "the file ends too early", "is a value or a bracket missing?")
    if problem.startswith("expected '<document start>'"):
        hint = option_hint(here) or "write every option as `name: value`"
        return Mistake(*at, "this does not belong to the lines before it", hint)
    if problem.startswith("but found another document"):
        return Mistake(*at, "a second document begins", "keep one, and remove the line ---")
    return Mistake(*at, _plain(problem), "")


def _unreadable(error: ReaderError, lines: list[str]) -> Mistake:
    hint = "remove it; was the file made by a program that writes no plain text?"
    character = error.character if isinstance(error.character, int) else ord(error.character[:1] or "\0")
    wrong = f"a character that is not text, U+{character:04X}"
    found = ((number, line.find(chr(character))) for number, line in enumerate(lines))
    line, column = next(((line, column) for line, column in found if column >= 0), (0, 0))
    return Mistake(line, column, wrong, hint)


def _unexpected_colon(at: tuple[int, int], lines: list[str]) -> Mistake:
    here = lines[at[0]]
    if len(_COLON.findall(here)) > 1:
        return Mistake(*at, "a second colon in one line", "put the value in quotes, or begin a new line")
    if not here[:1].isspace():  # the lines before it are a text without an end, since they have no colon
        first = at[0]
        while first and not _COLON.search(lines[first - 1]):
            first -= 1
        return Mistake(first, 0, "a colon is missing", option_hint(lines[first]))
    wrong = "this line is indented further than the one before it"
    return Mistake(*at, wrong, "begin every option at the start of its line")


def _unclosed(at: tuple[int, int], begun: tuple[int, int], lines: list[str], *, closing: str) -> Mistake:
    """A list or a mapping that goes on where the parser expects its end: either that or a comma is missing."""
    if any(closing in line for line in lines[at[0] :]):
        return Mistake(*at, "a comma is missing before this", "separate the values with commas")
    return Mistake(*begun, "a bracket is opened and not closed", f"close it with {closing}")


def _plain(problem: str) -> str:
    return " ".join(problem.split())[:_WIDTH] or "it cannot be read"


def _shown(line: str, column: int) -> str:
    """The line in quotes, or the part of it around a column when it is long. Nothing in it can end a line."""
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
