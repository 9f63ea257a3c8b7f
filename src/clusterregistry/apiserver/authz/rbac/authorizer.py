"""RBAC as an authorizer: from a policy to decisions, lists of rules and names."""

from __future__ import annotations

from collections.abc import Callable

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes, Decision, PathRule, ResourceRule, UserRules
from clusterregistry.apiserver.authz.rbac.policy import Policy


class RBACAuthorizer:
    """Allows what the roles bound to a user allow, and has no opinion on anything else."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def authorize(self, attributes: Attributes) -> Decision:
        return self._policy.grants(attributes.user).decision(attributes)

    def rules_of(self, user: User) -> UserRules:
        grants = self._policy.grants(user)
        rules = [each.rule for each in grants.grants]
        return UserRules(
            resource_rules=tuple(
                ResourceRule(
                    verbs=each.verbs,
                    api_groups=each.api_groups,
                    resources=each.resources,
                    resource_names=each.resource_names,
                )
                for each in rules
                if each.resources
            ),
            path_rules=tuple(
                PathRule(verbs=each.verbs, non_resource_urls=each.non_resource_urls)
                for each in rules
                if each.non_resource_urls
            ),
            problems=grants.problems,
        )

    def names_of(self, user: User, *, verb: str, group: str, resource: str) -> frozenset[str]:
        """Only names that a rule spells out: who may get whatever they can name has not been shown any."""
        return self._policy.grants(user).names(verb=verb, group=group, resource=resource)

    def changed_at(self, user: User) -> int:
        return self._policy.changed_at(user)

    def granted_at(self, user: User) -> int:
        return self._policy.grants(user).revision

    async def caught_up(self, revision: int) -> None:
        await self._policy.caught_up(revision)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        return self._policy.on_change(listener)
