"""What the filter makes of a decision, whether it is there at once or later."""

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
from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.filters import authorization
from clusterregistry.apiserver.http.response import Answer, resolve, text_response
from clusterregistry.apiserver.registry.object_filter import EVERYTHING
from tests.apiserver.authz.rbac.policies import GROUP, a_rule, bound, policy_of

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


class Asked(Request):
    """A request of which only the path matters."""

    async def read_body(self) -> tuple[bytes, bool]:
        raise AssertionError

    async def disconnected(self) -> None:
        raise AssertionError


async def passed(authorizer: Authorizer, path: str = THINGS, query: bytes = b"", **more: Any) -> Request:
    """The request when it has passed the filter. Raises what the filter raises."""
    request = Asked(method="GET", path=path, query_string=query, headers={})
    request.info = request_info.parse("GET", path, query)
    request.user = authenticated(name="jane")

    async def inner(_: Request) -> Answer:
        return text_response("here")

    answer = await resolve(authorization.filter_for(authorizer, **more)(inner)(request))
    assert answer.status == 200
    return request


async def refused(authorizer: Authorizer, path: str = THINGS, query: bytes = b"", **more: Any) -> None:
    with pytest.raises(APIError) as raised:
        await passed(authorizer, path, query, **more)
    assert raised.value.code == 403


def names_and(last: Authorizer) -> Union:
    policy = policy_of({"r": [a_rule("get", names=["a"])]}, {"b": bound("r", "User jane")})
    return Union([RBACAuthorizer(policy), last])


@pytest.mark.parametrize("says", [Says, SaysLater])
@pytest.mark.parametrize("query", [b"", b"watch=true"])
async def test_who_may_see_everything_does(says: type[Says], query: bytes) -> None:
    request = await passed(names_and(says(ALLOW)), query=query)
    assert request.visible.names() is None
    assert request.decision is ALLOW
    assert (request.visible is EVERYTHING) == (query == b"")


@pytest.mark.parametrize("says", [Says, SaysLater])
@pytest.mark.parametrize("query", [b"", b"watch=true"])
async def test_who_may_not_sees_what_they_may_get(says: type[Says], query: bytes) -> None:
    request = await passed(names_and(says(NO_OPINION)), query=query)
    assert request.visible.names() == frozenset("a")
    assert request.decision is not None
    assert request.decision.allowed
    await refused(names_and(says(NO_OPINION)), query=query, filtered_lists=False)


@pytest.mark.parametrize("says", [Says, SaysLater])
@pytest.mark.parametrize("query", [b"", b"watch=true", b"fieldSelector=metadata.name%3Da"])
async def test_a_denial_stays_one(says: type[Says], query: bytes) -> None:
    await refused(names_and(says(DENY)), query=query)


@pytest.mark.parametrize("says", [Says, SaysLater])
async def test_names_behind_somebody_who_may_deny_them_show_nothing(says: type[Says]) -> None:
    await refused(Union([says(NO_OPINION), names_and(Says(NO_OPINION))]))


@pytest.mark.parametrize("says", [Says, SaysLater])
async def test_who_knows_no_names_filters_nothing(says: type[Says]) -> None:
    await refused(says(NO_OPINION))
    request = await passed(says(ALLOW), query=b"watch=true")
    assert request.visible.names() is None
