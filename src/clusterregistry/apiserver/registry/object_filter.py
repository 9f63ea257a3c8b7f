"""The port by which lists and watches learn which objects a client may see. ``authz`` implements it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


def is_visible(key: str, names: frozenset[str]) -> bool:
    """Whether names have an object: by its key ``NAME`` or ``NAMESPACE/NAME``.

    An object in a namespace is also visible by ``NAMESPACE/``, all objects in it, and by ``NAME``, in any namespace.
    """
    if key in names or "/" not in key:
        return key in names
    namespace, slash, name = key.partition("/")
    return name in names or namespace + slash in names


class ObjectFilter(Protocol):
    """The objects of one resource that one client may see, now and after each change of rights."""

    def names(self) -> frozenset[str] | None:
        """The keys of the objects that the client may see now; None: all. See ``is_visible``."""
        ...

    @property
    def changed_at(self) -> int:
        """The storage revision of the last change of the client's rights: before it, the names may have been others."""
        ...

    @property
    def granted_at(self) -> int:
        """The storage revision of the client's newest right: before it, the client may have seen fewer objects."""
        ...

    async def caught_up(self, revision: int) -> None:
        """Returns once ``names`` counts every change of rights up to a revision. Raises StorageError."""
        ...

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls the listener whenever the names may have changed. Returns a function that ends that."""
        ...


class Everything:
    """Hides nothing."""

    changed_at = 0
    granted_at = 0

    def names(self) -> frozenset[str] | None:
        return None

    async def caught_up(self, revision: int) -> None:
        pass

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002 - nothing ever changes
        return _do_nothing


def _do_nothing() -> None:
    pass


EVERYTHING: ObjectFilter = Everything()
