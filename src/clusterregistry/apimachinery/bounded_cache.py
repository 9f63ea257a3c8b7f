"""Remembering results by text that clients send, without letting them fill the memory with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LONGEST = 512


def bounded_cache(most: int, *, longest: int = _LONGEST) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Keeps up to ``most`` results of a function of one text; texts above ``longest`` characters are not kept."""

    def wrap(function: Callable[[str], T]) -> Callable[[str], T]:
        return _Results(function, most=most, longest=longest).__getitem__

    return wrap


class _Results(dict[str, T]):
    """Results by their texts. A known one is looked up without a call of Python code, which costs more than the rest.

    When there are too many all are forgotten: whatever is asked for often is back soon.
    """

    def __init__(self, function: Callable[[str], T], *, most: int, longest: int) -> None:
        super().__init__()
        self._function, self._most, self._longest = function, most, longest

    def __missing__(self, text: str) -> T:
        result = self._function(text)
        if len(text) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self[text] = result
        return result
