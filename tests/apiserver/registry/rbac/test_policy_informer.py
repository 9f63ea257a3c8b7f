"""The policy follows what is stored, and leaves out an object that it cannot read."""

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
from tests.apiserver.api.rbac_objects import binding, local_binding, local_role, role, rule
from tests.apiserver.registry.rbac.server_writers import Writers, writers

JANE = User("jane", groups=("system:authenticated",))
GET = Attributes(user=JANE, verb="get", is_resource_request=True, group="clusterregistry.k8s.io", resource="clusters")


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Writers]:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    async with writers(storage) as kept:
        yield kept
    await storage.close()


async def put(kept: Writers, obj: dict[str, Any], *, under: str = "") -> None:
    """Stores an object that no client could, maybe under another key."""
    store = kept.stores[f"{obj['kind'].lower()}s"]
    key = under or store.prefix + store.key_of(obj["metadata"])
    value = to_stored({**obj, "metadata": {**obj["metadata"], "uid": "u"}})
    present = await store.storage.get(key)
    if present:
        await store.storage.update(key, value, expected=present.revision)
    else:
        await store.storage.create(key, value)


def allowed(policy: Policy, namespace: str = "") -> bool:
    return policy.grants_in(JANE, namespace).decide(GET).allowed


BAD_ROLE = role("bad") | {"rules": 5}
BAD_BINDING = binding("bad", "reader") | {"subjects": ["jane"]}


async def test_bad_objects_are_logged_and_the_others_count(kept: Writers, caplog: pytest.LogCaptureFixture) -> None:
    for obj in (BAD_ROLE, BAD_BINDING, role("reader", rule("get")), binding("reader", "reader", User="jane")):
        await put(kept, obj)
    policy = Policy()
    end = await run_policy_informer(policy, kept.stores, defaults=Defaults())
    assert allowed(policy)
    assert f"{kept.roles.store.prefix}bad" in caplog.text
    assert f"{kept.bindings.store.prefix}bad" in caplog.text
    end()


async def test_an_object_that_becomes_bad_grants_nothing(kept: Writers) -> None:
    policy = Policy()
    end = await run_policy_informer(policy, kept.stores, defaults=Defaults())
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


def in_namespace(obj: dict[str, Any], namespace: str) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


async def test_roles_and_bindings_of_namespaces_are_followed(kept: Writers) -> None:
    policy = Policy()
    await put(kept, in_namespace(local_role("reader", rule("get")), "n"))
    end = await run_policy_informer(policy, kept.stores, defaults=Defaults())
    bound = in_namespace(local_binding("b", "reader", User="jane"), "n")
    await put(kept, bound)
    assert [allowed(policy, namespace) for namespace in ("", "n", "m")] == [False, True, False]
    store = kept.stores["rolebindings"]
    stored = await store.storage.get(f"{store.prefix}n/b")
    assert stored is not None
    await store.storage.delete(stored.key, expected=stored.revision)
    assert not allowed(policy, "n")
    await put(kept, bound)
    await put(kept, {**bound, "subjects": [5]})
    assert not allowed(policy, "n")
    await policy.caught_up(stored.revision)
    end()


async def test_an_object_where_none_of_its_kind_can_be_grants_nothing(
    kept: Writers, caplog: pytest.LogCaptureFixture
) -> None:
    """A Role without a namespace must not count as a ClusterRole, nor one with a namespace as a Role."""
    policy = Policy()
    end = await run_policy_informer(policy, kept.stores, defaults=Defaults())
    await put(kept, binding("b", "reader", User="jane"))
    await put(kept, in_namespace(local_binding("b", "reader", User="jane"), "n"))
    roles, stray = kept.stores["roles"], kept.roles.store
    await put(kept, local_role("reader", rule("get")), under=f"{roles.prefix}reader")
    await put(kept, role("reader", rule("get")), under=f"{stray.prefix}n/reader")
    assert not allowed(policy)
    assert not allowed(policy, "n")
    assert f"'{roles.prefix}reader' grants nothing" in caplog.text
    found = await roles.storage.get(f"{roles.prefix}reader")
    assert found is not None
    await roles.storage.delete(found.key, expected=found.revision)
    end()
