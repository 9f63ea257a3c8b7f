"""Which objects a client may see, as lists and watches need to know it. Who decides that is not their business."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class ObjectFilter(Protocol):
    """What one client may see of one resource, now and whenever that changes."""

    def names(self) -> frozenset[str] | None:
        """The objects that the client may see by now; None: all of them."""
        ...

    @property
    def changed_at(self) -> int:
        """The storage revision of the last change of the client's rights: before it, names may have been others."""
        ...

    @property
    def granted_at(self) -> int:
        """The storage revision of the newest right of the client: before it, it may have seen fewer objects."""
        ...

    async def caught_up(self, revision: int) -> None:
        """Returns once ``names`` counts every change of rights up to a revision. Raises StorageError."""
        ...

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls the listener whenever names may have become others. Returns what ends that."""
        ...


class Everything:
    """Nothing is hidden, ever."""

    changed_at = 0
    granted_at = 0

    def names(self) -> frozenset[str] | None:
        return None

    async def caught_up(self, revision: int) -> None:
        pass

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002 - nothing ever changes
        return _nothing_to_end


def _nothing_to_end() -> None:
    pass


EVERYTHING: ObjectFilter = Everything()
