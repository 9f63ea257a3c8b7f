"""Several authorizers as one."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.authz.interface import NO_OPINION, Attributes, Authorizer, Decision, Verdict


class Union:
    """Asks each in turn; the first that has an opinion decides.

    When none has one, the answer is NO_OPINION with the reasons of all, a line each, as kube-apiserver gives them.
    """

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self._authorizers = tuple(authorizers)

    def authorize(self, attributes: Attributes) -> Decision:
        reasons: list[str] = []
        for authorizer in self._authorizers:
            decision = authorizer.authorize(attributes)
            if decision.verdict is not Verdict.NO_OPINION:
                return decision
            if decision.reason:
                reasons.append(decision.reason)
        return Decision(Verdict.NO_OPINION, "\n".join(reasons)) if reasons else NO_OPINION
