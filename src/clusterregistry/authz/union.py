"""Several authorizers as one."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence

from clusterregistry.authz.interface import NO_OPINION, Attributes, Authorizer, Decision, Verdict


class Union:
    """Asks each in turn; the first that has an opinion decides.

    When none has one, the answer is NO_OPINION with the reasons of all, a line each, as kube-apiserver gives them.
    """

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self._authorizers = tuple(authorizers)

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        return self._ask(iter(self._authorizers), attributes, reasons=[])

    def _ask(
        self, authorizers: Iterator[Authorizer], attributes: Attributes, *, reasons: list[str]
    ) -> Decision | Awaitable[Decision]:
        for authorizer in authorizers:
            decision = authorizer.authorize(attributes)
            if not isinstance(decision, Decision):
                return self._go_on(decision, authorizers, attributes, reasons=reasons)
            if decision.verdict is not Verdict.NO_OPINION:
                return decision
            if decision.reason:
                reasons.append(decision.reason)
        return Decision(Verdict.NO_OPINION, "\n".join(reasons)) if reasons else NO_OPINION

    async def _go_on(
        self, asked: Awaitable[Decision], others: Iterator[Authorizer], attributes: Attributes, *, reasons: list[str]
    ) -> Decision:
        """Waits for one decision, and asks the others if that is no opinion."""
        decision = await asked
        if decision.verdict is not Verdict.NO_OPINION:
            return decision
        if decision.reason:
            reasons.append(decision.reason)
        following = self._ask(others, attributes, reasons=reasons)
        return following if isinstance(following, Decision) else await following
