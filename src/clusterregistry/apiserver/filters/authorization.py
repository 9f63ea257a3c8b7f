"""Authorizes a request. Raises 403, before the handler checks whether the object exists.

A user who may not list or watch a collection, but may get some of its objects by name, sees these objects.
"""

from __future__ import annotations

from collections.abc import Awaitable
from collections.abc import Set as AbstractSet

from clusterregistry.apiserver.authz.forbidden import forbidden
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
_COLLECTION_VERBS = frozenset({"list", "watch"})
_NAMESPACES = ("", "namespaces")


def filter_for(
    authorizer: Authorizer, *, filtered_lists: bool = True, namespaced: AbstractSet[tuple[str, str]] = frozenset()
) -> Filter:
    """``namespaced`` has the group and the plural of each resource whose objects belong to namespaces."""
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
            else:
                check(request, attributes, decision)
            return inner(request)

        async def handle_later(request: Request, attributes: Attributes, asked: Awaitable[Decision]) -> Answer:
            check(request, attributes, await asked)
            return await resolve(inner(request))

        def check(request: Request, attributes: Attributes, decision: Decision) -> None:
            request.decision = decision
            allowed = decision.allowed
            if allowed and attributes.verb != "watch":
                return
            # Also for a watch that may see everything: rights may change while it lasts.
            visible = Visibility(
                authorizer,
                lister,
                attributes=attributes,
                allowed=allowed,
                filtered=filtered_lists,
                namespaced=(attributes.group, attributes.resource) in namespaced,
            )
            if not allowed and (decision.verdict is Verdict.DENY or not _sees_some(visible, attributes)):
                raise forbidden(attributes, decision)
            request.visible = visible
            if not allowed:
                request.decision = _ALLOWED_FILTERED

        return handle

    return wrap


def _sees_some(visible: Visibility, attributes: Attributes) -> bool:
    """Whether a refused request is for a collection of which the user may get some objects by their names."""
    if attributes.verb not in _COLLECTION_VERBS or attributes.subresource:
        return False
    if attributes.namespace and not visible.namespaced and (attributes.group, attributes.resource) != _NAMESPACES:
        return False
    return visible.shows_some()
