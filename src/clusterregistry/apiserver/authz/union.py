"""Several authorizers as one, as k8s.io/apiserver's union authorizer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import takewhile

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import (
    NO_OPINION,
    Attributes,
    Authorizer,
    Decision,
    EmptyNameLister,
    NameLister,
    RuleLister,
    UserRules,
    Verdict,
)

_NO_OPINION = Verdict.NO_OPINION  # looked up once: members of an Enum cost a call each time


class Union:
    """Calls each authorizer in turn; the first that has an opinion decides.

    If none has one, the decision is NO_OPINION with the reasons of all, a line each, as in kube-apiserver.
    """

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self._authorizers = tuple(_flat(authorizers))
        self.decides_at_once = all(isinstance(each, NameLister) for each in self._authorizers)
        """Whether no authorizer ever decides with an awaitable, so that decisions hold until rights change."""
        self._rule_listers = [each for each in self._authorizers if isinstance(each, RuleLister)]
        # An authorizer that cannot list names might deny those that later ones allow: their names do not count.
        listers = takewhile(lambda each: isinstance(each, NameLister), self._authorizers)
        self._name_listers = [
            each for each in listers if isinstance(each, NameLister) and not isinstance(each, EmptyNameLister)
        ]

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        return self._decide(iter(self._authorizers), attributes, reasons=[])

    def _decide(
        self, authorizers: Iterator[Authorizer], attributes: Attributes, *, reasons: list[str]
    ) -> Decision | Awaitable[Decision]:
        for authorizer in authorizers:
            decision = authorizer.authorize(attributes)
            if not isinstance(decision, Decision):
                return self._await_decision(decision, authorizers, attributes, reasons=reasons)
            if decision.verdict is not _NO_OPINION:
                return decision
            if decision.reason:
                reasons.append(decision.reason)
        return Decision(Verdict.NO_OPINION, "\n".join(reasons)) if reasons else NO_OPINION

    async def _await_decision(
        self, pending: Awaitable[Decision], others: Iterator[Authorizer], attributes: Attributes, *, reasons: list[str]
    ) -> Decision:
        """Awaits one decision, and calls the others if it is no opinion."""
        decision = await pending
        if decision.verdict is not Verdict.NO_OPINION:
            return decision
        if decision.reason:
            reasons.append(decision.reason)
        following = self._decide(others, attributes, reasons=reasons)
        return following if isinstance(following, Decision) else await following

    def rules_of(self, user: User, *, namespace: str = "") -> UserRules:
        """The rules of all together; incomplete if one of them cannot list its rules."""
        listed = [each.rules_of(user, namespace=namespace) for each in self._rule_listers]
        return UserRules(
            resource_rules=tuple(rule for each in listed for rule in each.resource_rules),
            path_rules=tuple(rule for each in listed for rule in each.path_rules),
            incomplete=len(listed) < len(self._authorizers) or any(each.incomplete for each in listed),
            problems=tuple(problem for each in listed for problem in each.problems),
        )

    def names_of(
        self, user: User, *, verb: str, group: str, resource: str, namespace: str | None = ""
    ) -> frozenset[str]:
        """The names that one of them allows and no earlier one can deny."""
        return frozenset().union(
            *(
                each.names_of(user, verb=verb, group=group, resource=resource, namespace=namespace)
                for each in self._name_listers
            )
        )

    def namespaces_of(self, user: User, *, verb: str, group: str, resource: str) -> frozenset[str]:
        listed = [each.namespaces_of(user, verb=verb, group=group, resource=resource) for each in self._name_listers]
        return frozenset().union(*listed)

    def changed_at(self, user: User, *, in_namespaces: bool = False) -> int:
        return max((each.changed_at(user, in_namespaces=in_namespaces) for each in self._name_listers), default=0)

    def granted_at(self, user: User, *, namespace: str = "") -> int:
        return max((each.granted_at(user, namespace=namespace) for each in self._name_listers), default=0)

    async def caught_up(self, revision: int) -> None:
        for each in self._name_listers:
            await each.caught_up(revision)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        ends = [each.on_change(listener) for each in self._name_listers]

        def end() -> None:
            for each in ends:
                each()

        return end


def _flat(authorizers: Sequence[Authorizer]) -> Iterator[Authorizer]:
    """The authorizers, those of nested unions one by one, so that all that can deny are seen."""
    for each in authorizers:
        if isinstance(each, Union):
            yield from each._authorizers  # noqa: SLF001 - another of the same class
        else:
            yield each
