"""The objects of a resource that a user may see, evaluated anew whenever rights change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from clusterregistry.apiserver.authz.interface import Attributes, Authorizer, Decision, NameLister, Verdict

SINGLE_OBJECT_VERB = "get"
"""The verb on a single object that makes it visible in filtered lists and watches."""

_pending: set[asyncio.Future[Decision]] = set()
"""Decisions that are being made in the background: asyncio itself keeps no reference to their tasks."""


class Visibility:
    """What a list or watch shows to one user: everything if that is allowed, else the objects that the user may get.

    Implements ``registry.object_filter.ObjectFilter``. Without ``filtered`` a user who may not list all objects sees
    none.
    """

    __slots__ = ("_attributes", "_authorizer", "_filtered", "_lister", "_whole_at")

    def __init__(
        self,
        authorizer: Authorizer,
        lister: NameLister,
        *,
        attributes: Attributes,
        allowed: bool,
        filtered: bool,
    ) -> None:
        """``allowed`` is the authorizer's decision on the attributes."""
        self._authorizer, self._lister = authorizer, lister
        self._attributes, self._filtered = attributes, filtered
        self._whole_at = lister.changed_at(attributes.user) if allowed else None

    def names(self) -> frozenset[str] | None:
        """The names that the user may see now; None: all.

        Never waits. If the decision needs a call to another server, the last decision counts until rights change, and
        single names from then on; the next request of the user is authorized anew.
        """
        decision = self._authorizer.authorize(self._attributes)
        if not isinstance(decision, Decision) or decision.undecided:
            if not isinstance(decision, Decision):
                _finish_in_background(decision)
            return None if self._whole_at == self.changed_at else self.single_names()
        if decision.allowed:
            return None
        return frozenset() if decision.verdict is Verdict.DENY else self.single_names()

    def single_names(self) -> frozenset[str]:
        """The names for a user who may not see all objects."""
        if not self._filtered:
            return frozenset()
        user, group, resource = self._attributes.user, self._attributes.group, self._attributes.resource
        return self._lister.names_of(user, verb=SINGLE_OBJECT_VERB, group=group, resource=resource)

    @property
    def changed_at(self) -> int:
        return self._lister.changed_at(self._attributes.user)

    @property
    def granted_at(self) -> int:
        return self._lister.granted_at(self._attributes.user) if self._filtered else 0

    async def caught_up(self, revision: int) -> None:
        await self._lister.caught_up(revision)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        return self._lister.on_change(listener)


def _finish_in_background(decision: Awaitable[Decision]) -> None:
    """Completes a decision that was begun. The authorizer has it cached the next time."""
    task = asyncio.ensure_future(decision)
    _pending.add(task)
    task.add_done_callback(_pending.discard)
