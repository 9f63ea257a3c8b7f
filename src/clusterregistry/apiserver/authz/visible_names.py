"""Which objects of a resource a user may see, asked again whenever rights change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from clusterregistry.apiserver.authz.interface import Attributes, Authorizer, Decision, NameLister, Verdict

SINGLE_OBJECT_VERB = "get"
"""Who may do this with single objects sees these in lists and watches."""

_asked: set[asyncio.Future[Decision]] = set()
"""Questions under way that nobody waits for: asyncio itself would forget them."""


class Visibility:
    """What a list or watch shows to one user: everything that is allowed, else the objects that they may get.

    ``filtered`` is False where whoever may not list everything lists nothing.
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
        """``allowed`` is what the authorizer has just said to the attributes."""
        self._authorizer, self._lister = authorizer, lister
        self._attributes, self._filtered = attributes, filtered
        self._whole_at = lister.changed_at(attributes.user) if allowed else None

    def names(self) -> frozenset[str] | None:
        """The names that the user may see by now; None: all.

        Never waits: where somebody would have to be asked elsewhere, what was said last counts until rights change,
        and single names from then on. Whoever asks anew gets the whole truth.
        """
        decision = self._authorizer.authorize(self._attributes)
        if not isinstance(decision, Decision) or decision.undecided:
            if not isinstance(decision, Decision):
                _let_it_answer(decision)
            return None if self._whole_at == self.changed_at else self.single_names()
        if decision.allowed:
            return None
        return frozenset() if decision.verdict is Verdict.DENY else self.single_names()

    def single_names(self) -> frozenset[str]:
        """The names for somebody who may not see all."""
        if not self._filtered:
            return frozenset()
        asked = self._attributes
        return self._lister.names_of(asked.user, verb=SINGLE_OBJECT_VERB, group=asked.group, resource=asked.resource)

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


def _let_it_answer(asked: Awaitable[Decision]) -> None:
    """A question that was begun has to be brought to its end. Who asks elsewhere knows the answer next time."""
    answer = asyncio.ensure_future(asked)
    _asked.add(answer)
    answer.add_done_callback(_asked.discard)
