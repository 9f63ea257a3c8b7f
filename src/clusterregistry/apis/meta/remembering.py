"""Remembering results by text that clients send, without letting them fill the memory with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")

_LONGEST = 512


def remembered(most: int, *, longest: int = _LONGEST) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Keeps the last ``most`` results of a function of one text; texts above ``longest`` characters are not kept."""

    def wrap(function: Callable[[str], T]) -> Callable[[str], T]:
        kept = lru_cache(most)(function)

        @wraps(function)
        def call(text: str) -> T:
            return kept(text) if len(text) <= longest else function(text)

        return call

    return wrap
