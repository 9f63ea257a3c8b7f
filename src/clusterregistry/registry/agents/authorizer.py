"""Authorizes agents and joining members: a short list of rights on one cluster, and a denial of everything else.

It comes before all modes, so that no role and no set can add a right. What is not in the attributes of a request, such
as the object of an event, is checked by ``admission``.
"""

from __future__ import annotations

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.api.clusterregistry.agents import EVENT_NAMESPACE, event_prefix, request_prefix
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import (
    ALLOW,
    NO_OPINION,
    Attributes,
    Decision,
    EmptyNameLister,
    ResourceRule,
    UserRules,
    Verdict,
)
from clusterregistry.registry.agents.identity import GROUPS, Identities, Identity

_CERTIFICATES = "certificates.k8s.io"
_REQUESTS = "certificatesigningrequests"
_EVENT_GROUPS = ("", "events.k8s.io")
_READ = frozenset({"get", "list", "watch"})
_READ_AND_WRITE = frozenset({"get", "patch", "update"})
_CHANGE = frozenset({"patch", "update"})
_OF_ONESELF = frozenset(
    {
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    }
)
_OPEN_PATHS = frozenset({"api", "apis", "openapi", "version", "healthz", "livez", "readyz"})
"""The first segments of paths that clients need. Metrics and profiles are those of the whole server."""

_AGENT = Decision(Verdict.DENY, "an agent may read its own cluster and write its status, and nothing else")
_JOINING = Decision(Verdict.DENY, "a bootstrap token is for joining as its own cluster, and for nothing else")
_ENDED = Decision(Verdict.DENY, "its bootstrap token does not exist any more, or has expired")


class AgentAuthorizer(EmptyNameLister):
    """Has no opinion on other users, and on what usually every user may do: discovery, and reviews of oneself.

    It lists no names for filtered lists: what it does not allow, it denies.
    """

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    def authorize(self, attributes: Attributes) -> Decision:
        if GROUPS.isdisjoint(attributes.user.groups):  # nearly every request
            return NO_OPINION
        identity = self._identities.of(attributes.user)
        if identity is None:
            return NO_OPINION
        if not attributes.is_resource_request:
            return NO_OPINION if attributes.path.strip("/").partition("/")[0] in _OPEN_PATHS else _AGENT
        if (attributes.group, attributes.resource) in _OF_ONESELF:
            return NO_OPINION
        if not identity.cluster:
            return _AGENT if identity.is_agent else _ENDED
        if identity.is_agent:
            return ALLOW if _agent_may(attributes, identity.cluster) else _AGENT
        return ALLOW if _member_may(attributes, identity.cluster) else _JOINING

    def rules_of(self, user: User, *, namespace: str = "") -> UserRules:
        """The rules of an agent or a joining member, as rules of roles say it. Names of requests begin as shown."""
        identity = self._identities.of(user)
        if identity is None or not identity.cluster:
            return UserRules()
        rules = (*_rules(identity), *(_event_rules() if identity.is_agent and namespace == EVENT_NAMESPACE else ()))
        return UserRules(resource_rules=rules)


def _agent_may(asked: Attributes, cluster: str) -> bool:
    match asked.group, asked.resource, asked.subresource:
        case (group, "clusters", "") if group == GROUP:
            return asked.verb in _READ and asked.name == cluster
        case (group, "clusters", "status") if group == GROUP:
            return asked.verb in _READ_AND_WRITE and asked.name == cluster
        case (group, "events", "") if group in _EVENT_GROUPS and asked.namespace == EVENT_NAMESPACE:
            is_own = asked.name.startswith(event_prefix(cluster))
            return (asked.verb == "create" and (is_own or not asked.name)) or (asked.verb in _CHANGE and is_own)
    return _may_request(asked, cluster)


def _member_may(asked: Attributes, cluster: str) -> bool:
    if (asked.group, asked.resource, asked.subresource) == (GROUP, "clusters", ""):
        return (asked.verb == "create" and asked.name in ("", cluster)) or (
            asked.verb == "get" and asked.name == cluster
        )
    return _may_request(asked, cluster)


def _may_request(asked: Attributes, cluster: str) -> bool:
    """Whether it is about a request for its own certificate."""
    if (asked.group, asked.resource, asked.subresource) != (_CERTIFICATES, _REQUESTS, ""):
        return False
    is_own = asked.name.startswith(request_prefix(cluster))
    return (asked.verb == "create" and (is_own or not asked.name)) or (asked.verb == "get" and is_own)


def _rules(identity: Identity) -> tuple[ResourceRule, ...]:
    names = (identity.cluster,)
    requests = ResourceRule(verbs=("create",), api_groups=(_CERTIFICATES,), resources=(_REQUESTS,))
    if not identity.is_agent:
        read = ResourceRule(verbs=("get",), api_groups=(GROUP,), resources=("clusters",), resource_names=names)
        create = ResourceRule(verbs=("create",), api_groups=(GROUP,), resources=("clusters",))
        return read, create, requests
    read = ResourceRule(
        verbs=("get", "list", "watch"), api_groups=(GROUP,), resources=("clusters",), resource_names=names
    )
    status = ResourceRule(
        verbs=("get", "patch", "update"), api_groups=(GROUP,), resources=("clusters/status",), resource_names=names
    )
    return read, status, requests


def _event_rules() -> tuple[ResourceRule, ...]:
    return (ResourceRule(verbs=("create",), api_groups=_EVENT_GROUPS, resources=("events",)),)
