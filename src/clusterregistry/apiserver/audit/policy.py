"""The audit policy: which requests are recorded, and how much of each. Rules are tried in their order.

Without a policy of the operator, ``DEFAULT_POLICY`` counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterregistry.apiserver.audit.settings import REQUEST_RECEIVED, Level
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.endpoints.request_info import RequestInfo

ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What is done with the requests of a rule."""

    level: Level
    omitted_stages: frozenset[str] = frozenset()
    omits_managed_fields: bool = False


NOTHING = Recording(level=Level.None_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Resources of one group: none named means all; ``clusters``, ``clusters/status``, ``*/status``, ``clusters/*``.

    Unlike ``clusters/*``, which is also ``clusters`` itself, ``*/status`` is nothing but the subresource.
    """

    group: str
    resources: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def match(self, info: RequestInfo) -> bool:
        if info.group != self.group:
            return False
        if not self.resources:
            return True
        return (not self.names or info.name in self.names) and not self.resources.isdisjoint(_spellings(info))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What must hold of a request: an empty condition always does."""

    recording: Recording
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    resources: tuple[Resources, ...] = ()
    paths: tuple[str, ...] = ()

    def matches(self, user: User | None, info: RequestInfo) -> bool:
        """``user`` is None when authentication failed: rules that name users do not match then."""
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.groups and (user is None or self.groups.isdisjoint(user.groups)):
            return False
        if self.verbs and info.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return self._matches_resource(info)
        return not self.paths or self._matches_path(info)

    def _matches_resource(self, info: RequestInfo) -> bool:
        if not info.is_resource or (self.namespaces and info.namespace not in self.namespaces):
            return False
        return not self.resources or any(each.match(info) for each in self.resources)

    def _matches_path(self, info: RequestInfo) -> bool:
        return not info.is_resource and any(_path_matches(info.path, path) for path in self.paths)


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules in their order."""

    rules: Sequence[Rule]

    def recording(self, user: User | None, info: RequestInfo) -> Recording:
        for rule in self.rules:
            if rule.matches(user, info):
                return rule.recording
        return NOTHING


def _spellings(info: RequestInfo) -> tuple[str, ...]:
    """Everything by which a rule may name the resource of a request."""
    resource, subresource = info.resource, info.subresource
    if subresource:
        return ANY, f"{resource}/{subresource}", f"*/{subresource}", f"{resource}/*"
    return ANY, resource, f"{resource}/*"


def _path_matches(path: str, wanted: str) -> bool:
    return path == wanted or (wanted.endswith(ANY) and path.startswith(wanted.rstrip(ANY)))


DEFAULT_POLICY = Policy(
    (
        Rule(recording=NOTHING, paths=(ANY,)),
        Rule(
            recording=NOTHING,
            resources=(Resources(group="authentication.k8s.io"), Resources(group="authorization.k8s.io")),
        ),
        Rule(
            recording=Recording(level=Level.Metadata, omitted_stages=frozenset({REQUEST_RECEIVED})),
            verbs=frozenset({"create", "update", "patch", "delete", "deletecollection"}),
        ),
    )
)
"""Records who changed something, and who tried to: every write at the level Metadata, also one that was refused.

Reads are not recorded: there are hundreds of them to a write. Nor are reviews: they are created, but change nothing,
and a server that delegates authentication to this one creates one for each of its own requests. Nor are other paths:
health, metrics, discovery, OpenAPI, version. ``docs/guides/security/audit.md`` shows the policy as a file; a test
compares the two.
"""
