"""Authorizes a request. Raises 403, before the handler checks whether the object exists.

A user who may not list or watch a collection, but may get some of its objects by name, sees these objects. Rights on
groups of objects are decided last. They also show the members of the groups; a request for one object is decided again
by the handler, on the very object: ``Request.group_rights``.
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
_DELETE_COLLECTION = "deletecollection"
_COLLECTION_VERBS = frozenset({"list", "watch", _DELETE_COLLECTION})
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
    others = _OtherRequests(authorizer, filtered_lists=filtered_lists, namespaced=namespaced, group_rights=group_rights)

    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            request.authorizer = authorizer
            attributes = attributes_of(request)
            decision = authorizer.authorize(attributes)
            if not isinstance(decision, Decision):
                return handle_later(request, attributes, decision)
            if decision.allowed and attributes.verb != "watch":
                request.decision = decision
                return inner(request)
            return others.handle(request, attributes, decision, inner)

        async def handle_later(request: Request, attributes: Attributes, asked: Awaitable[Decision]) -> Answer:
            decision = await asked
            if decision.allowed and attributes.verb != "watch":
                request.decision = decision
                return await resolve(inner(request))
            return await resolve(others.handle(request, attributes, decision, inner))

        return handle

    return wrap


class _OtherRequests:
    """Watches, and what the authorizers do not allow by itself."""

    def __init__(
        self,
        authorizer: Authorizer,
        *,
        filtered_lists: bool,
        namespaced: AbstractSet[tuple[str, str]],
        group_rights: Mapping[tuple[str, str], GroupRights],
    ) -> None:
        self._authorizer, self._filtered_lists = authorizer, filtered_lists
        self._lister = authorizer if isinstance(authorizer, NameLister) else EmptyNameLister()
        self._namespaced, self._group_rights = namespaced, group_rights

    def handle(self, request: Request, attributes: Attributes, decision: Decision, inner: Handler) -> Reply:
        """Raises 403 and 503."""
        request.decision = decision
        if not decision.allowed and (attributes.group, attributes.resource) in self._group_rights:
            return self._handle_by_groups(request, attributes, decision, inner)
        # Also for a watch that may see everything: rights may change while it lasts.
        visible = self._visibility(attributes, allowed=decision.allowed)
        if not decision.allowed:
            if decision.verdict is Verdict.DENY or not _sees_some(visible, attributes):
                raise forbidden(attributes, decision)
            request.decision = _ALLOWED_FILTERED
        request.visible = visible
        return inner(request)

    async def _handle_by_groups(
        self, request: Request, attributes: Attributes, decision: Decision, inner: Handler
    ) -> Answer:
        if decision.verdict is Verdict.DENY or attributes.namespace:
            raise forbidden(attributes, decision)
        if attributes.verb in _COLLECTION_VERBS:
            visible = self._visibility(attributes, allowed=False)
            problem = await visible.ask_groups()
            # Without the groups that are not decided on, something would be missing.
            if problem is not None or not _sees_some(visible, attributes):
                raise forbidden(attributes, problem or decision)
            request.visible, request.decision = visible, _ALLOWED_BY_GROUPS
        else:
            rights = self._group_rights[attributes.group, attributes.resource]
            by_groups = await _by_groups(rights, attributes)
            if not by_groups.allowed:
                raise forbidden(attributes, by_groups if by_groups.undecided else decision)
            request.group_rights, request.decision = rights, by_groups
        return await resolve(inner(request))

    def _visibility(self, attributes: Attributes, *, allowed: bool) -> Visibility:
        key = (attributes.group, attributes.resource)
        return Visibility(
            self._authorizer,
            self._lister,
            attributes=attributes,
            allowed=allowed,
            filtered=self._filtered_lists and attributes.verb != _DELETE_COLLECTION,
            namespaced=key in self._namespaced,
            rights=self._group_rights.get(key),
        )


async def _by_groups(rights: GroupRights, attributes: Attributes) -> Decision:
    """Whether the user may do this with the stored object, or with some object that is yet to be made."""
    asked = rights.decide_on_some if attributes.verb == CREATE else rights.authorize
    decision = asked(attributes)
    return decision if isinstance(decision, Decision) else await decision


def _sees_some(visible: Visibility, attributes: Attributes) -> bool:
    """Whether a refused request is for a collection of which the user may see some objects."""
    if attributes.verb not in _COLLECTION_VERBS or attributes.subresource:
        return False
    if attributes.namespace and not visible.namespaced and (attributes.group, attributes.resource) != _NAMESPACES:
        return False
    return visible.shows_some()
