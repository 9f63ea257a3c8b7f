"""The objects of a resource that a user may see: by names and by groups, evaluated again whenever rights change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from clusterregistry.apiserver.authz.group_rights import GroupRights
from clusterregistry.apiserver.authz.interface import Attributes, Authorizer, Decision, NameLister, Verdict
from clusterregistry.apiserver.authz.view import View

SINGLE_OBJECT_VERB = "get"
"""The verb on a single object that makes it visible in filtered lists and watches."""

_pending: set[asyncio.Future[Decision]] = set()
"""Decisions that are being made in the background: asyncio itself keeps no reference to their tasks."""


class Visibility:
    """What a list or watch shows to one user: everything if that is allowed, else the objects that the user may get.

    Implements ``registry.object_filter.ObjectFilter``. Without ``filtered`` no object is visible by its name. Members
    of groups are: a rule with the verb on a group means its members.

    Objects become visible by their names. A list of all namespaces that shows some objects so also shows the namespaces
    that the user may list as a whole; these alone do not open it, as in kube-apiserver.
    """

    __slots__ = (
        "_asked",
        "_asked_at",
        "_attributes",
        "_authorizer",
        "_filtered",
        "_lister",
        "_rights",
        "_whole_at",
        "namespaced",
    )

    def __init__(  # noqa: PLR0913 - all but the first two by keyword
        self,
        authorizer: Authorizer,
        lister: NameLister,
        *,
        attributes: Attributes,
        allowed: bool,
        filtered: bool,
        namespaced: bool = False,
        rights: GroupRights | None = None,
    ) -> None:
        """``allowed`` is the authorizer's decision on the attributes, ``namespaced`` the scope of the resource.

        ``rights`` are those by groups of the resource, if it has any.
        """
        self._authorizer, self._lister = authorizer, lister
        self._attributes, self._filtered, self.namespaced = attributes, filtered, namespaced
        self._rights = rights
        self._asked: frozenset[str] = frozenset()
        """The groups that other servers have allowed."""
        self._asked_at = -1
        self._whole_at = self._names_changed_at if allowed else None

    def view(self) -> View | None:
        """What the user may see now; None: all.

        Never waits. If the decision needs a call to another server, the last decision counts until rights change, and
        single objects from then on; the next request of the user is authorized again.
        """
        decision = self._authorizer.authorize(self._attributes)
        if not isinstance(decision, Decision) or decision.undecided:
            if not isinstance(decision, Decision):
                _finish_in_background(decision)
            return None if self._whole_at == self._names_changed_at else self._single_objects()
        if decision.allowed:
            return None
        return View() if decision.verdict is Verdict.DENY else self._single_objects()

    def _single_objects(self) -> View:
        names, groups = self.single_names(), self._groups()
        if not groups or self._rights is None:
            return View(names)
        membership = self._rights.membership
        return View(names, groups, membership.changed_at(groups), membership)

    def _groups(self) -> frozenset[str]:
        """The groups whose members the user may see."""
        if self._rights is None:
            return frozenset()
        listed = self._rights.listed(self._attributes)
        return self._asked if listed is None else listed

    async def ask_groups(self) -> Decision | None:
        """Asks other servers for the groups, once for each change of rights. Returns why the answer is incomplete."""
        rights, changed_at = self._rights, self.changed_at
        if rights is None or self._asked_at == changed_at or rights.listed(self._attributes) is not None:
            return None
        found = await rights.ask(self._attributes)
        # While they do not answer, what they allowed before still counts.
        self._asked = found.allowed | (self._asked & found.undecided)
        self._asked_at = changed_at
        return found.problem

    def single_names(self) -> frozenset[str]:
        """The names for a user who may not see all objects: ``NAME``, ``NAMESPACE/NAME`` and ``NAMESPACE/``."""
        if not self._filtered:
            return frozenset()
        asked, lister = self._attributes, self._lister
        user, group, resource = asked.user, asked.group, asked.resource
        namespace = (asked.namespace or None) if self.namespaced else ""
        names = lister.names_of(user, verb=SINGLE_OBJECT_VERB, group=group, resource=resource, namespace=namespace)
        if not names or namespace is not None:
            return names
        whole = lister.namespaces_of(user, verb=asked.verb, group=group, resource=resource)
        return names.union(f"{each}/" for each in whole)

    def shows_some(self) -> bool:
        """Whether a user who may not see all objects may see one of those that the request is for.

        A group counts without members: they come and go.
        """
        names, asked = self.single_names(), self._attributes
        if self._groups():
            return True
        if not asked.name:
            return bool(names)
        if self.namespaced and not asked.namespace:
            return any(name.rpartition("/")[2] == asked.name for name in names)
        return (f"{asked.namespace}/{asked.name}" if self.namespaced else asked.name) in names

    @property
    def changed_at(self) -> int:
        if self._rights is None:
            return self._names_changed_at
        # Of all groups: those that are gone, or new, have changed what the user may see.
        return max(self._names_changed_at, self._rights.membership.changed_at())

    @property
    def _names_changed_at(self) -> int:
        asked = self._attributes
        return self._lister.changed_at(asked.user, in_namespaces=self.namespaced or bool(asked.namespace))

    @property
    def granted_at(self) -> int:
        asked = self._attributes
        return self._lister.granted_at(asked.user, namespace=asked.namespace) if self._filtered else 0

    async def caught_up(self, revision: int) -> None:
        await self._lister.caught_up(revision)
        if self._rights is not None:
            await self._rights.membership.caught_up(revision)
            await self.ask_groups()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        end_names = self._lister.on_change(listener)
        end_groups = None if self._rights is None else self._rights.membership.on_change(listener)

        def end() -> None:
            end_names()
            if end_groups is not None:
                end_groups()

        return end


def _finish_in_background(decision: Awaitable[Decision]) -> None:
    """Completes a decision that was begun. The authorizer has it cached the next time."""
    task = asyncio.ensure_future(decision)
    _pending.add(task)
    task.add_done_callback(_pending.discard)
