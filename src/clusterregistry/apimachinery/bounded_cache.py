"""Caches of results by keys that clients choose: bounded in the number of entries and in the length of a key."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

_LONGEST = 512


class _SizedHashable(Hashable, Protocol):
    def __len__(self) -> int: ...


_Key = TypeVar("_Key", bound=Hashable)
_SizedKey = TypeVar("_SizedKey", bound=_SizedHashable)
_Value = TypeVar("_Value")


class BoundedCache(dict[_Key, _Value]):
    """A dict of at most ``most`` entries, filled with ``put``.

    A full cache is cleared before the next entry: the keys in frequent use return soon, and a lookup has no
    bookkeeping.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def put(self, key: _Key, value: _Value) -> None:
        if len(self) >= self._most:
            self.clear()
        self[key] = value


def bounded_cache(
    most: int, *, longest: int = _LONGEST
) -> Callable[[Callable[[_SizedKey], _Value]], Callable[[_SizedKey], _Value]]:
    """Decorates a function of one text, bytes or tuple: caches up to ``most`` results.

    The result for a key of more than ``longest`` characters, bytes or items is computed anew each time.
    """

    def wrap(function: Callable[[_SizedKey], _Value]) -> Callable[[_SizedKey], _Value]:
        return _Results(function, most=most, longest=longest).__getitem__

    return wrap


class _Results(BoundedCache[_SizedKey, _Value]):
    """Results by key. A hit runs no Python code, which would cost more than the lookup itself."""

    def __init__(self, function: Callable[[_SizedKey], _Value], *, most: int, longest: int) -> None:
        super().__init__(most)
        self._function, self._longest = function, longest

    def __missing__(self, key: _SizedKey) -> _Value:
        result = self._function(key)
        if len(key) <= self._longest:
            self.put(key, result)
        return result
