"""The policy follows what is stored, and one object that it cannot take costs no other its effect."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.registry.rbac.bootstrap import Defaults
from clusterregistry.apiserver.registry.rbac.policy_informer import run_policy_informer
from clusterregistry.apiserver.storage.object_bytes import to_stored
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.api.rbac_objects import binding, role, rule
from tests.apiserver.registry.rbac.server_writers import Keepers, keepers

JANE = User("jane", groups=("system:authenticated",))
GET = Attributes(user=JANE, verb="get", is_resource_request=True, group="clusterregistry.k8s.io", resource="clusters")


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Keepers]:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    async with keepers(storage) as kept:
        yield kept
    await storage.close()


async def put(kept: Keepers, obj: dict[str, Any]) -> None:
    """Stores it as it is: not as a client could."""
    store = (kept.bindings if "roleRef" in obj else kept.roles).store
    key, value = store.prefix + obj["metadata"]["name"], to_stored({**obj, "metadata": {**obj["metadata"], "uid": "u"}})
    present = await store.storage.get(key)
    if present:
        await store.storage.update(key, value, expected=present.revision)
    else:
        await store.storage.create(key, value)


def allowed(policy: Policy) -> bool:
    return policy.grants(JANE).decide(GET).allowed


BAD_ROLE = role("bad") | {"rules": 5}
BAD_BINDING = binding("bad", "reader") | {"subjects": ["jane"]}


async def test_bad_objects_that_are_there_are_named_and_the_others_count(
    kept: Keepers, caplog: pytest.LogCaptureFixture
) -> None:
    for obj in (BAD_ROLE, BAD_BINDING, role("reader", rule("get")), binding("reader", "reader", User="jane")):
        await put(kept, obj)
    policy = Policy()
    end = await run_policy_informer(policy, roles=kept.roles.store, bindings=kept.bindings.store, defaults=Defaults())
    assert allowed(policy)
    assert f"{kept.roles.store.prefix}bad" in caplog.text
    assert f"{kept.bindings.store.prefix}bad" in caplog.text
    end()


async def test_an_object_that_becomes_bad_gives_nothing_any_longer(kept: Keepers) -> None:
    policy = Policy()
    end = await run_policy_informer(policy, roles=kept.roles.store, bindings=kept.bindings.store, defaults=Defaults())
    for obj in (role("reader", rule("get")), binding("reader", "reader", User="jane")):
        await put(kept, obj)
    assert allowed(policy)
    await put(kept, role("reader") | {"rules": 5})
    assert not allowed(policy)
    await put(kept, role("reader", rule("get")))
    assert allowed(policy)
    await put(kept, binding("reader", "reader", User="jane") | {"subjects": [5]})
    assert not allowed(policy)
    await put(kept, binding("reader", "reader", User="jane"))
    assert allowed(policy)
    end()
