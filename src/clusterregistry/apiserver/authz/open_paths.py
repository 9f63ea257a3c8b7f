"""Paths that everybody may use, whoever decides on the rest."""

from __future__ import annotations

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import (
    ALLOW,
    NO_OPINION,
    Attributes,
    Decision,
    NamesNobody,
    PathRule,
    UserRules,
)


class OpenPaths(NamesNobody):
    """Allows everything on these paths, not on those below them, and has no opinion on others."""

    def __init__(self, *paths: str) -> None:
        self._paths = frozenset(paths)
        self._rules = UserRules(path_rules=(PathRule(verbs=("*",), non_resource_urls=paths),))

    def authorize(self, attributes: Attributes) -> Decision:
        return ALLOW if not attributes.is_resource_request and attributes.path in self._paths else NO_OPINION

    def rules_of(self, user: User) -> UserRules:  # noqa: ARG002 - the port's signature
        return self._rules
