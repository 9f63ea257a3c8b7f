"""Paths that are no resources and may be read without any role: health and version by all, discovery by users.

Under kube-apiserver these are the default roles ``system:public-info-viewer`` and ``system:discovery``; without
discovery no kubectl of an ordinary user gets as far as being told what it may not do.
"""

from __future__ import annotations

from collections.abc import Iterable

from clusterregistry.authn.users import ALL_AUTHENTICATED, User
from clusterregistry.authz.interface import ALLOW, NO_OPINION, Attributes, Decision, NamesNobody, PathRule, UserRules

PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")
DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")


class ReadablePaths(NamesNobody):
    """Allows GET on some paths; a path that ends in ``*`` stands for all that begin so.

    ``group`` limits it to the members of one group.
    """

    def __init__(self, paths: Iterable[str], *, group: str = "") -> None:
        named = tuple(paths)
        self._group = group
        self._rules = UserRules(path_rules=(PathRule(verbs=("get",), non_resource_urls=named),))
        self._exact = frozenset(path for path in named if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in named if path.endswith("*"))

    def authorize(self, attributes: Attributes) -> Decision:
        if attributes.is_resource_request or attributes.verb != "get":
            return NO_OPINION
        if not self._concerns(attributes.user):
            return NO_OPINION
        path = attributes.path
        return ALLOW if path in self._exact or path.startswith(self._prefixes) else NO_OPINION

    def rules_of(self, user: User) -> UserRules:
        return self._rules if self._concerns(user) else UserRules()

    def _concerns(self, user: User) -> bool:
        return not self._group or self._group in user.groups


def public_information() -> ReadablePaths:
    """Everybody, also anonymous, may ask whether the server is well and which version it is."""
    return ReadablePaths(PUBLIC)


def discovery() -> ReadablePaths:
    """Every authenticated user may ask what the server serves."""
    return ReadablePaths(DISCOVERY, group=ALL_AUTHENTICATED)
