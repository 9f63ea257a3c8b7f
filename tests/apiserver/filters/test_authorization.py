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
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.filters import authorization
from clusterregistry.apiserver.http.response import Answer, resolve, text_response
from clusterregistry.apiserver.registry.object_filter import EVERYTHING
from tests.apiserver.authz.rbac.policies import GROUP, a_rule, bound, policy_of
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


async def passed(authorizer: Authorizer, query: str = "", **more: Any) -> Request:
    """The request after the filter. Raises what the filter raises."""
    request = BareRequest(target=f"{THINGS}?{query}")
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
    assert request.visible.names() is None
    assert request.decision is ALLOW
    assert (request.visible is EVERYTHING) == (query == "")


@pytest.mark.parametrize("says", [Says, SaysLater])
@pytest.mark.parametrize("query", ["", "watch=true"])
async def test_a_user_who_may_not_list_sees_the_objects_they_may_get(says: type[Says], query: str) -> None:
    request = await passed(names_and(says(NO_OPINION)), query=query)
    assert request.visible.names() == frozenset("a")
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
    assert request.visible.names() is None
