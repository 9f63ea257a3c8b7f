"""Kinds of option values: how text becomes a value, and how a value is shown.

The command line, the environment and the file all yield text; a kind is the one place that parses it. ``parse`` raises
ValueError with a message for users, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from clusterregistry.apimachinery.meta.duration import parse_duration

T = TypeVar("T")
Word = TypeVar("Word", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T]):
    """How one kind of value is parsed and shown."""

    metavar: str
    parse: Callable[[str], T]
    show: Callable[[T], str] = str
    bare: str | None = None
    """The meaning of a flag without a value; None: a value must follow."""
    next_is_value: Callable[[str], bool] | None = None
    """Whether the next argument is the value of the flag; None: the rule of ``takes_next``."""
    empty_is_default: bool = False
    """An empty value takes back the value of a weaker source."""
    repeatable: bool = False
    """A flag that is given several times counts in all its places, and the value is a tuple."""
    choices: tuple[str, ...] = ()
    """The words that are allowed, where these are few."""

    def takes_next(self, argument: str) -> bool:
        """Whether a flag without ``=`` takes the next argument as its value.

        An argument that begins with two dashes is more likely the next flag after a forgotten value.
        """
        if self.next_is_value is not None:
            return self.next_is_value(argument)
        return self.bare is None and not argument.startswith("--")


_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def _boolean(text: str) -> bool:
    """Accepts Go's spellings of a boolean, since the flags have Go's syntax."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f'"{text}" is not a boolean: write true or false')


def _integer(text: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text, re.ASCII) is None:
        raise ValueError(f'"{text}" is not a whole number')
    return int(text)


_PLAIN_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_LONGEST = 100 * 365 * 86400.0


def _duration(text: str) -> float:
    """Returns the seconds of a duration in Go's syntax without a sign, or of plain seconds."""
    try:
        seconds = float(text) if _PLAIN_SECONDS.fullmatch(text) else parse_duration(text)
    except ValueError:
        seconds = -1
    if seconds < 0 or text.startswith(("+", "-")):
        raise ValueError(
            f'"{text}" is not a duration: write one like 30s, 5m or 1h30m (no sign; plain seconds will do)'
        )
    if seconds > _LONGEST:
        raise ValueError(f'"{text}" is longer than a hundred years')
    return seconds


def shown_duration(seconds: float) -> str:
    """Returns seconds in Go's syntax, to the nanosecond, without the parts that are zero: ``1h30m``."""
    if seconds <= 0:
        return "0s"
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    exact = f"{left:.9f}".rstrip("0").rstrip(".")
    parts = (f"{hours:.0f}h" if hours else "", f"{minutes:.0f}m" if minutes else "", f"{exact}s" if left else "")
    return "".join(parts)


def _path(text: str) -> Path:
    if "\0" in text:
        raise ValueError("a path cannot hold a NUL character")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f'the home directory in "{text}" is not known') from None


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _assignments(text: str) -> tuple[tuple[str, str], ...]:
    """Returns the pairs of ``name=value,other=value``."""
    pairs = [word.partition("=") for word in _words(text)]
    for name, equals, _ in pairs:
        if not name.strip() or not equals:
            raise ValueError(f'"{text}" is no assignment: write name=value')
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)


def _directory(text: str) -> Path:
    if not text.strip():
        raise ValueError("an empty name is no directory: give one, or leave the option out for the default")
    return _path(text)


ADDRESS: Kind[str] = Kind(metavar="ADDRESS", parse=str.strip, empty_is_default=True)
TEXT: Kind[str] = Kind(metavar="TEXT", parse=str.strip, empty_is_default=True)
BOOLEAN: Kind[bool] = Kind(metavar="BOOL", parse=_boolean, show=lambda value: str(value).lower(), bare="true")
INTEGER: Kind[int] = Kind(metavar="NUMBER", parse=_integer)
DURATION: Kind[float] = Kind(metavar="DURATION", parse=_duration, show=shown_duration)
WORDS: Kind[tuple[str, ...]] = Kind(metavar="A,B,...", parse=_words, show=",".join)
ASSIGNMENTS: Kind[tuple[tuple[str, str], ...]] = Kind(
    metavar="NAME=VALUE",
    parse=_assignments,
    show=lambda pairs: ",".join(f"{name}={value}" for name, value in pairs),
    empty_is_default=True,
    repeatable=True,
)
# A bare -v asks for details; a number after it says for how many.
VERBOSITY: Kind[int] = Kind(metavar="LEVEL", parse=_integer, bare="1", next_is_value=str.isdecimal)
FILE: Kind[Path | None] = Kind(metavar="FILE", parse=_path, show=lambda path: str(path or ""), empty_is_default=True)
FILES: Kind[tuple[Path, ...]] = Kind(
    metavar="FILE",
    parse=lambda text: (_path(text),) if text else (),
    show=lambda paths: ",".join(map(str, paths)),
    empty_is_default=True,
    repeatable=True,
)
"""One path each time: a comma may be a part of it."""

TEXTS: Kind[tuple[str, ...]] = Kind(
    metavar="TEXT",
    parse=lambda text: (text.strip(),) if text.strip() else (),
    show=",".join,
    empty_is_default=True,
    repeatable=True,
)
# An empty directory comes from a shell variable that is not set: the default would be the data of another registry.
DIRECTORY: Kind[Path | None] = Kind(metavar="DIR", parse=_directory, show=lambda path: str(path or ""))


def choice(*allowed: Word, later: tuple[str, ...] = ()) -> Kind[Word]:
    """Makes a kind that allows some words; ``later`` are words that this version does not support yet."""
    words: dict[str, Word] = {word: word for word in allowed}

    def parse(text: str) -> Word:
        if text in words:
            return words[text]
        if text in later:
            raise ValueError(f"{text} is not supported yet: use {' or '.join(allowed)}")
        raise ValueError(f'"{text}" is not one of {", ".join(allowed)}')

    return Kind(metavar="|".join(allowed), parse=parse, choices=tuple(allowed))
