"""Headers that belong together, such as those by which a client asks to act as somebody else."""

from __future__ import annotations

from collections.abc import Iterable


class HeaderNames:
    """Some headers, by their lower-case names and by how lower-case names begin."""

    __slots__ = ("_beginnings", "_names", "_suspects")

    def __init__(self, names: Iterable[str], *, beginnings: Iterable[str] = ()) -> None:
        self._names = frozenset(name.encode() for name in names)
        self._beginnings = tuple(beginning.encode() for beginning in beginnings)
        self._suspects = tuple(b"\n" + beginning for beginning in self._beginnings)

    def contains(self, name: bytes) -> bool:
        return name in self._names or name.startswith(self._beginnings)

    def any_in(self, headers: dict[bytes, bytes]) -> bool:
        """Asked for each request: all names are looked through as one text, which is faster than one by one."""
        if not self._names.isdisjoint(headers):
            return True
        text = b"\n" + b"\n".join(headers)
        return any(suspect in text for suspect in self._suspects)
