"""The effect of a decision that is made at once, or later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.user import authenticated
from clusterregistry.apiserver.authz.interface import ALLOW, DENY, NO_OPINION, Attributes, Authorizer, Decision
from clusterregistry.apiserver.authz.rbac.policy import RBACAuthorizer
from clusterregistry.apiserver.authz.union import Union
from clusterregistry.apiserver.authz.view import View
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.filters import authorization
from clusterregistry.apiserver.http.response import Answer, resolve, text_response
from clusterregistry.apiserver.registry.object_filter import EVERYTHING
from tests.apiserver.authz.groups import Groups, rights
from tests.apiserver.authz.rbac.policies import GROUP, a_rule, bound, bound_in, policy_of
from tests.apiserver.server.requests import BareRequest

THINGS = f"/apis/{GROUP}/v1/things"


class Says:
    def __init__(self, decision: Decision) -> None:
        self.decision = decision

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:  # noqa: ARG002
        return self.decision


class SaysLater(Says):
    async def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002
        await asyncio.sleep(0)
        return self.decision


async def passed(authorizer: Authorizer, query: str = "", path: str = THINGS, **more: Any) -> Request:
    """The request after the filter. Raises what the filter raises."""
    request = BareRequest(target=f"{path}?{query}")
    request.user = authenticated(name="jane")

    async def inner(_: Request) -> Answer:
        return text_response("here")

    answer = await resolve(authorization.filter_for(authorizer, **more)(inner)(request))
    assert answer.status == 200
    return request


async def refused(authorizer: Authorizer, query: str = "", **more: Any) -> None:
    with pytest.raises(APIError) as raised:
        await passed(authorizer, query, **more)
    assert raised.value.code == 403


def names_and(last: Authorizer) -> Union:
    policy = policy_of({"r": [a_rule("get", names=["a"])]}, {"b": bound("r", "User jane")})
    return Union([RBACAuthorizer(policy), last])


@pytest.mark.parametrize("says", [Says, SaysLater])
@pytest.mark.parametrize("query", ["", "watch=true"])
async def test_a_user_who_may_list_sees_all_objects(says: type[Says], query: str) -> None:
    request = await passed(names_and(says(ALLOW)), query=query)
    assert request.visible.view() is None
    assert request.decision is ALLOW
    assert (request.visible is EVERYTHING) == (query == "")


@pytest.mark.parametrize("says", [Says, SaysLater])
@pytest.mark.parametrize("query", ["", "watch=true"])
async def test_a_user_who_may_not_list_sees_the_objects_they_may_get(says: type[Says], query: str) -> None:
    request = await passed(names_and(says(NO_OPINION)), query=query)
    assert request.visible.view() == View(frozenset("a"))
    assert request.decision is not None
    assert request.decision.allowed
    await refused(names_and(says(NO_OPINION)), query=query, filtered_lists=False)


@pytest.mark.parametrize("says", [Says, SaysLater])
@pytest.mark.parametrize("query", ["", "watch=true", "fieldSelector=metadata.name%3Da"])
async def test_a_denied_request_is_refused(says: type[Says], query: str) -> None:
    await refused(names_and(says(DENY)), query=query)


@pytest.mark.parametrize("says", [Says, SaysLater])
async def test_names_behind_an_authorizer_that_may_deny_them_are_not_used(says: type[Says]) -> None:
    await refused(Union([says(NO_OPINION), names_and(Says(NO_OPINION))]))


@pytest.mark.parametrize("says", [Says, SaysLater])
async def test_an_authorizer_without_names_filters_nothing(says: type[Says]) -> None:
    await refused(says(NO_OPINION))
    request = await passed(says(ALLOW), query="watch=true")
    assert request.visible.view() is None


def rights_in(namespace: str) -> RBACAuthorizer:
    rules = [a_rule("get", names=["a"]), a_rule("get", "namespaces", group="", names=["a"])]
    return RBACAuthorizer(policy_of({"r": rules}, {f"{namespace}/b": bound_in(namespace, "r", "User jane")}))


NAMESPACED = frozenset({(GROUP, "things")})
IN_N, IN_M = f"/apis/{GROUP}/v1/namespaces/n/things", f"/apis/{GROUP}/v1/namespaces/m/things"


@pytest.mark.parametrize("query", ["", "watch=true", "fieldSelector=metadata.name%3Da"])
@pytest.mark.parametrize("path", [THINGS, IN_N])
async def test_objects_that_are_named_in_a_namespace_are_shown(path: str, query: str) -> None:
    request = await passed(rights_in("n"), query, path=path, namespaced=NAMESPACED)
    assert request.visible.view() == View(frozenset({"n/a"}))


@pytest.mark.parametrize("query", ["", "watch=true", "fieldSelector=metadata.name%3Da"])
async def test_a_namespace_without_rights_stays_closed(query: str) -> None:
    await refused(rights_in("n"), query, path=IN_M, namespaced=NAMESPACED)
    await refused(rights_in("n"), "fieldSelector=metadata.name%3Db", namespaced=NAMESPACED)


@pytest.mark.parametrize("path", [THINGS, IN_N])
async def test_rights_in_a_namespace_show_nothing_of_a_root_scoped_resource(path: str) -> None:
    await refused(rights_in("n"), path=path)
    await refused(names_and(Says(NO_OPINION)), path=IN_N)


async def test_a_namespace_is_watched_by_its_name() -> None:
    policy = policy_of({"r": [a_rule("get", "namespaces", group="", names=["a"])]}, {"b": bound("r", "User jane")})
    request = await passed(RBACAuthorizer(policy), path="/api/v1/watch/namespaces/a", namespaced=NAMESPACED)
    assert request.visible.view() == View(frozenset({"a"}))
    await refused(RBACAuthorizer(policy), path="/api/v1/watch/namespaces/b", namespaced=NAMESPACED)
    await refused(rights_in("a"), path="/api/v1/namespaces", namespaced=NAMESPACED)


THING = f"{THINGS}/a"
ON_SETS = a_rule("get list deletecollection create", "sets/things", names=["red"])


def by_sets(last: Authorizer | None = None) -> tuple[Union, dict[str, Any]]:
    """An authorizer, and the rights by the set red, which has the object a."""
    policy = policy_of({"r": [ON_SETS]}, {"b": bound("r", "User jane")})
    union = Union([RBACAuthorizer(policy), *([last] if last else [])])
    return union, {"group_rights": {(GROUP, "things"): rights(union, Groups(red="a", blue="b"))}}


async def test_a_member_of_a_set_may_be_read_and_is_decided_on_again() -> None:
    union, more = by_sets()
    request = await passed(union, path=THING, **more)
    assert request.group_rights is more["group_rights"][GROUP, "things"]
    assert request.decision is not None
    assert request.decision.reason.startswith('group rights by sets "red": RBAC')
    assert request.visible is EVERYTHING
    for path in (f"{THINGS}/b", f"{THING}/status"):
        await refused(union, path=path, **more)
    await refused(union, path=THING)


@pytest.mark.parametrize("says", [Says, SaysLater])
async def test_members_are_shown_in_lists(says: type[Says]) -> None:
    union, more = by_sets()
    request = await passed(union, **more)
    assert request.visible.view() == View(groups=frozenset({"red"}))
    assert request.group_rights is None
    await refused(union, query="watch=true", **more)
    denied, more = by_sets(says(DENY))
    for path in (THINGS, THING):
        await refused(denied, path=path, **more)


async def test_what_is_allowed_by_itself_needs_no_set() -> None:
    for says in (Says, SaysLater):
        union, more = by_sets(says(ALLOW))
        request = await passed(union, path=f"{THINGS}/b", **more)
        assert request.group_rights is None
        watching = await passed(union, query="watch=true", **more)
        assert watching.visible.view() is None


async def test_sets_give_no_right_in_a_namespace() -> None:
    union, more = by_sets()
    for path in (IN_N, f"{IN_N}/a"):
        await refused(union, path=path, **more)
