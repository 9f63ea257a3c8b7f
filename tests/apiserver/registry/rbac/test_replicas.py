"""Several servers on one storage keep the same roles and do not work against each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from clusterregistry.apiserver.authn.user import ANONYMOUS_USER, authenticated
from clusterregistry.apiserver.authz.interface import Attributes
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.registry.rbac.bootstrap import default_bindings, default_roles
from clusterregistry.apiserver.storage.interface import Storage
from tests.apiserver.api.rbac_objects import aggregate, binding, role, rule
from tests.apiserver.registry.rbac.server_writers import Keepers, replica
from tests.apiserver.storage import etcd_engine
from tests.apiserver.storage.engines import SHARED, SharedEngine, settled

PATIENCE = 30.0


@pytest.fixture(params=SHARED)
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SharedEngine]:
    engine = SHARED[request.param](tmp_path)
    yield engine
    await engine.close()


async def eventually(happens: Callable[[], bool]) -> None:
    await etcd_engine.eventually(happens, seconds=PATIENCE)


def may(policy: Policy, path: str) -> bool:
    asked = Attributes(user=ANONYMOUS_USER, verb="get", is_resource_request=False, path=path)
    return policy.grants(ANONYMOUS_USER).decide(asked).allowed


async def started_at_once(engine: SharedEngine, stack: AsyncExitStack) -> list[tuple[Keepers, Policy, Storage]]:
    stores = [await engine.open(), await engine.open_second()]
    policies = [Policy(), Policy()]
    begun = [stack.enter_async_context(replica(*each)) for each in zip(stores, policies, strict=True)]
    kept = await asyncio.gather(*begun)
    return list(zip(kept, policies, stores, strict=True))


async def test_two_that_start_at_once_make_every_default_object_once(engine: SharedEngine) -> None:
    async with AsyncExitStack() as stack:
        for kept, policy, store in await started_at_once(engine, stack):
            await settled(store)
            assert len(await kept.roles.seen()) == len(default_roles())
            assert len(await kept.bindings.seen()) == len(default_bindings())
            await eventually(lambda policy=policy: may(policy, "/readyz"))  # type: ignore[misc]
            assert not may(policy, "/metrics")


async def test_they_come_to_rest_on_the_same_rules(engine: SharedEngine) -> None:
    async with AsyncExitStack() as stack:
        (one, _, store), (two, policy, _) = await started_at_once(engine, stack)
        await one.roles.create(role("part", rule("get"), labels={"to": "sum"}), manager="one")
        await two.roles.create(aggregate("sum", to="sum"), manager="two")
        await eventually(lambda: bool(policy.role("sum")))
        revision = await settled(store)
        await two.roles.create(role("other", rule("list"), labels={"to": "sum"}), manager="two")
        await eventually(lambda: len(policy.role("sum") or ()) == 2)
        # One write made the role and one took it over. Two replicas that undid each other's would go on and on.
        assert await settled(store) - revision <= 4


async def test_what_one_answered_the_same_one_knows(engine: SharedEngine) -> None:
    jane = authenticated(name="jane")
    asked = Attributes(
        user=jane, verb="get", is_resource_request=True, group="clusterregistry.k8s.io", resource="clusters"
    )
    async with AsyncExitStack() as stack:
        (one, policy, _), (_, far, _) = await started_at_once(engine, stack)
        await one.roles.create(role("reader", rule("get")), manager="test")
        await one.bindings.create(binding("readers", "reader", User="jane"), manager="test")
        assert policy.grants(jane).decide(asked).allowed
        await eventually(lambda: far.grants(jane).decide(asked).allowed)
        await one.bindings.delete("readers")
        assert not policy.grants(jane).decide(asked).allowed
        await eventually(lambda: not far.grants(jane).decide(asked).allowed)
