"""Kinds of option values: how text becomes a value, and how a value is shown.

Text is all that the command line, the environment and the file can give, so a kind is the one place that reads it.
``parse`` raises ValueError with a message for people, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
Word = TypeVar("Word", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T]):
    """How one kind of value is read and shown.

    ``bare`` is what a flag without a value means; None when the value must follow. ``takes_next`` says whether a flag
    that may stand bare takes the next argument for its value. ``empty_is_default``: an empty value takes back what
    a weaker source gave. ``repeatable``: a flag that is given several times counts in all its places, and the value is
    a tuple. ``choices`` are the words that there are, where these are few.
    """

    metavar: str
    parse: Callable[[str], T]
    show: Callable[[T], str] = str
    bare: str | None = None
    takes_next: Callable[[str], bool] = lambda _: False
    empty_is_default: bool = False
    repeatable: bool = False
    choices: tuple[str, ...] = ()


_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def _boolean(text: str) -> bool:
    """Go's spellings of a boolean, since flags are Go's."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f'"{text}" is not a boolean: write true or false')


def _integer(text: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text, re.ASCII) is None:
        raise ValueError(f'"{text}" is not a whole number')
    return int(text)


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_PLAIN_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_LONGEST = 100 * 365 * 86400.0


def _duration(text: str) -> float:
    """Seconds of ``30s``, ``5m``, ``1h30m`` or of plain seconds."""
    if _PLAIN_SECONDS.fullmatch(text):
        return _bounded(float(text), text)
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(
            f'"{text}" is not a duration: write one like 30s, 5m or 1h30m (no sign; plain seconds will do)'
        )
    return _bounded(sum(float(number) * _UNITS[unit] for number, unit in parts), text)


def _bounded(seconds: float, text: str) -> float:
    if seconds > _LONGEST:
        raise ValueError(f'"{text}" is longer than a hundred years')
    return seconds


def shown_duration(seconds: float) -> str:
    """Seconds as Go would write them, to the nanosecond: ``1h30m0s`` without the parts that are nothing."""
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
    """The pairs of ``name=value,other=value``."""
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
VERBOSITY: Kind[int] = Kind(metavar="LEVEL", parse=_integer, bare="1", takes_next=str.isdecimal)
FILE: Kind[Path | None] = Kind(metavar="FILE", parse=_path, show=lambda path: str(path or ""), empty_is_default=True)
# An empty directory is a variable that was not set: the default in its place would be another registry's data.
DIRECTORY: Kind[Path | None] = Kind(metavar="DIR", parse=_directory, show=lambda path: str(path or ""))


def choice(*allowed: Word, later: tuple[str, ...] = ()) -> Kind[Word]:
    """One of some words; ``later`` are words of the contract that this version does not know yet."""
    words: dict[str, Word] = {word: word for word in allowed}

    def parse(text: str) -> Word:
        if text in words:
            return words[text]
        if text in later:
            raise ValueError(f"{text} is not supported yet: use {' or '.join(allowed)}")
        raise ValueError(f'"{text}" is not one of {", ".join(allowed)}')

    return Kind(metavar="|".join(allowed), parse=parse, choices=tuple(allowed))
