"""Headers that belong together, such as those by which a client asks to act as somebody else."""

from __future__ import annotations

from collections.abc import Iterable

_KEPT = 256
_LONGEST = 2048


class HeaderNames:
    """Some headers, by their lower-case names and by how lower-case names begin.

    Asked for each request, so it is remembered which of them are among the names that a request has: clients send the
    same ones again and again. What is remembered is bounded, since it is theirs to choose.
    """

    __slots__ = ("_beginnings", "_found", "_names")

    def __init__(self, names: Iterable[str], *, beginnings: Iterable[str] = ()) -> None:
        self._names = frozenset(names)
        self._beginnings = tuple(beginnings)
        self._found: dict[tuple[str, ...], frozenset[str]] = {}

    def found_in(self, headers: Iterable[str]) -> frozenset[str]:
        """Those that are there. Takes names, or what has them as keys."""
        given = tuple(headers)
        found = self._found.get(given)
        return self._look(given) if found is None else found

    def _look(self, given: tuple[str, ...]) -> frozenset[str]:
        begun = (name for name in given if name.startswith(self._beginnings))
        found = self._names.intersection(given).union(begun)
        if sum(map(len, given)) <= _LONGEST:
            if len(self._found) >= _KEPT:
                self._found.clear()
            self._found[given] = found
        return found
