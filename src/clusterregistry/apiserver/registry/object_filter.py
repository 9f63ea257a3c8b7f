"""The port by which lists and watches learn which objects a client may see. ``authz`` implements it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from clusterregistry.apiserver.authz.view import View


class ObjectFilter(Protocol):
    """The objects of one resource that one client may see, now and after each change of rights."""

    def view(self) -> View | None:
        """The objects that the client may see now; None: all."""
        ...

    @property
    def changed_at(self) -> int:
        """The storage revision of the last change of the client's rights: before it, the view may have been another."""
        ...

    @property
    def granted_at(self) -> int:
        """The storage revision of the client's newest right: before it, the client may have seen fewer objects."""
        ...

    async def caught_up(self, revision: int) -> None:
        """Returns once ``view`` counts every change of rights up to a revision. Raises StorageError."""
        ...

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls the listener whenever the view may have changed. Returns a function that ends that."""
        ...


class Everything:
    """Hides nothing."""

    changed_at = 0
    granted_at = 0

    def view(self) -> View | None:
        return None

    async def caught_up(self, revision: int) -> None:
        pass

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002 - nothing ever changes
        return _do_nothing


def _do_nothing() -> None:
    pass


EVERYTHING: ObjectFilter = Everything()
