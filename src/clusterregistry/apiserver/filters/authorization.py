"""Authorizes a request. Raises 403, before the handler checks whether the object exists.

A user who may not list or watch a collection, but may get some of its objects by name, sees these objects. So does one
with rights on groups of objects, who also may do with the members of a group what the rights on the group say. These are
decided last, and again on the very object by the handler: ``Request.group_rights``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from collections.abc import Set as AbstractSet

from clusterregistry.apiserver.authz.forbidden import forbidden
from clusterregistry.apiserver.authz.group_rights import CREATE, GroupRights
from clusterregistry.apiserver.authz.interface import (
    Attributes,
    Authorizer,
    Decision,
    EmptyNameLister,
    NameLister,
    Verdict,
)
from clusterregistry.apiserver.authz.visible_names import Visibility
from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request, attributes_of
from clusterregistry.apiserver.http.response import Answer, Reply, resolve

_ALLOWED_FILTERED = Decision(Verdict.ALLOW, "filtered: only objects that the user may get by their names are shown")
_ALLOWED_BY_GROUPS = Decision(Verdict.ALLOW, "filtered: only objects that the user may see by names or groups")
_COLLECTION_VERBS = frozenset({"list", "watch"})
_DELETE_COLLECTION = "deletecollection"
_NO_GROUPS: Mapping[tuple[str, str], GroupRights] = {}
_NAMESPACES = ("", "namespaces")


def filter_for(
    authorizer: Authorizer,
    *,
    filtered_lists: bool = True,
    namespaced: AbstractSet[tuple[str, str]] = frozenset(),
    group_rights: Mapping[tuple[str, str], GroupRights] = _NO_GROUPS,
) -> Filter:
    """``namespaced`` has the group and the plural of each resource whose objects belong to namespaces.

    ``group_rights`` has the rights by groups, by group and plural of the resource.
    """
    lister = authorizer if isinstance(authorizer, NameLister) else EmptyNameLister()

    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            request.authorizer = authorizer
            attributes = attributes_of(request)
            decision = authorizer.authorize(attributes)
            if not isinstance(decision, Decision):
                return handle_later(request, attributes, decision)
            if decision.allowed and attributes.verb != "watch":
                request.decision = decision
            elif not decision.allowed and (attributes.group, attributes.resource) in group_rights:
                return handle_by_groups(request, attributes, decision)
            else:
                check(request, attributes, decision)
            return inner(request)

        async def handle_later(request: Request, attributes: Attributes, asked: Awaitable[Decision]) -> Answer:
            decision = await asked
            if not decision.allowed and (attributes.group, attributes.resource) in group_rights:
                return await handle_by_groups(request, attributes, decision)
            check(request, attributes, decision)
            return await resolve(inner(request))

        def visibility(attributes: Attributes, *, allowed: bool) -> Visibility:
            key = (attributes.group, attributes.resource)
            return Visibility(
                authorizer,
                lister,
                attributes=attributes,
                allowed=allowed,
                filtered=filtered_lists and attributes.verb in _COLLECTION_VERBS,
                namespaced=key in namespaced,
                rights=group_rights.get(key),
            )

        def check(request: Request, attributes: Attributes, decision: Decision) -> None:
            request.decision = decision
            allowed = decision.allowed
            if allowed and attributes.verb != "watch":
                return
            # Also for a watch that may see everything: rights may change while it lasts.
            visible = visibility(attributes, allowed=allowed)
            if not allowed and (decision.verdict is Verdict.DENY or not _sees_some(visible, attributes)):
                raise forbidden(attributes, decision)
            request.visible = visible
            if not allowed:
                request.decision = _ALLOWED_FILTERED

        async def handle_by_groups(request: Request, attributes: Attributes, decision: Decision) -> Answer:
            """Where the authorizers do not allow it. Raises 403 and 503."""
            request.decision = decision
            if decision.verdict is Verdict.DENY:
                raise forbidden(attributes, decision)
            if attributes.verb in _COLLECTION_VERBS or attributes.verb == _DELETE_COLLECTION:
                visible = visibility(attributes, allowed=False)
                problem = await visible.ask_groups()
                # Without the groups that are not decided on, something would be missing.
                if problem is not None or not _sees_some(visible, attributes):
                    raise forbidden(attributes, problem or decision)
                request.visible, request.decision = visible, _ALLOWED_BY_GROUPS
            else:
                rights = group_rights[attributes.group, attributes.resource]
                by_groups = await _by_groups(rights, attributes)
                if not by_groups.allowed:
                    raise forbidden(attributes, by_groups if by_groups.undecided else decision)
                request.group_rights, request.decision = rights, by_groups
            return await resolve(inner(request))

        return handle

    return wrap


async def _by_groups(rights: GroupRights, attributes: Attributes) -> Decision:
    """Whether the user may do this with the stored object, or with some object that is yet to be made."""
    asked = rights.decide_on_some if attributes.verb == CREATE else rights.authorize
    decision = asked(attributes)
    return decision if isinstance(decision, Decision) else await decision


def _sees_some(visible: Visibility, attributes: Attributes) -> bool:
    """Whether a refused request is for a collection of which the user may see some objects."""
    if attributes.verb not in _COLLECTION_VERBS and attributes.verb != _DELETE_COLLECTION:
        return False
    if attributes.subresource:
        return False
    if attributes.namespace and not visible.namespaced and (attributes.group, attributes.resource) != _NAMESPACES:
        return False
    return visible.shows_some()
