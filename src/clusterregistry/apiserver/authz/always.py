"""The same answer for everybody, for trials and tests."""

from __future__ import annotations

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import (
    ALLOW,
    Attributes,
    Decision,
    NamesNobody,
    PathRule,
    ResourceRule,
    UserRules,
    Verdict,
)

_ANY = ("*",)
_EVERYTHING = UserRules(
    resource_rules=(ResourceRule(verbs=_ANY, api_groups=_ANY, resources=_ANY),),
    path_rules=(PathRule(verbs=_ANY, non_resource_urls=_ANY),),
)


class AlwaysAllow(NamesNobody):
    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002 - the port's signature
        return ALLOW

    def rules_of(self, user: User) -> UserRules:  # noqa: ARG002 - the port's signature
        return _EVERYTHING


class AlwaysDeny(NamesNobody):
    """Allows nothing. As in kube-apiserver this is no veto: a mode named after it may still allow."""

    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002 - the port's signature
        return Decision(Verdict.NO_OPINION, "Everything is forbidden.")

    def rules_of(self, user: User) -> UserRules:  # noqa: ARG002 - the port's signature
        return UserRules()
