"""A storage that cannot be written keeps no server from starting, and the default roles count all the same."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.authn.user import ANONYMOUS_USER
from clusterregistry.apiserver.authz.interface import Attributes
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.registry.rbac import controller
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.object_bytes import to_stored
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.api.rbac_objects import aggregate, role, rule
from tests.apiserver.registry.rbac.server_writers import Keepers, keepers, replica
from tests.apiserver.storage.etcd_engine import eventually

READY = Attributes(user=ANONYMOUS_USER, verb="get", is_resource_request=False, path="/readyz")


class ReadOnly:
    """A storage that takes no writes until it is told to."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self.refuses: Any = None
        self.refused: tuple[str, ...] = ("create", "update", "delete")

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self.refuses if self.refuses and name in self.refused else found


async def _full(*_arguments: Any, **_keywords: Any) -> int:
    raise StorageUnavailable("the disk is full")


async def _hanging(*_arguments: Any, **_keywords: Any) -> int:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture
async def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(controller, "_AT_START", 0.2)
    monkeypatch.setattr(controller, "_BETWEEN_ATTEMPTS", 0.01)
    monkeypatch.setattr(controller, "_PATIENCE", 0.01)
    inner = await SQLiteStorage.open(tmp_path / "registry.db")
    yield ReadOnly(inner)
    await inner.close()


@pytest.mark.parametrize("refusal", [_full, _hanging])
async def test_a_server_starts_and_writes_the_roles_later(
    refusal: Any, storage: ReadOnly, caplog: pytest.LogCaptureFixture
) -> None:
    storage.refuses, policy = refusal, Policy()
    async with replica(storage, policy) as kept:
        assert await kept.roles.seen() == {}
        assert policy.grants(ANONYMOUS_USER).decide(READY).allowed
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        storage.refuses = None
        view = f"{kept.roles.store.prefix}view"
        await eventually(lambda: kept.roles.store.count() > 0 and bool(policy.role("view")), seconds=30.0)
        assert await kept.roles.store.storage.get(view) is not None


async def test_what_somebody_made_of_a_default_role_counts_when_it_cannot_be_repaired(storage: ReadOnly) -> None:
    async with replica(storage, Policy()) as kept:
        await kept.roles.change("system:public-info-viewer", lambda old: {**old, "rules": None}, manager="test")
    storage.refuses, policy = _full, Policy()
    async with replica(storage, policy):
        assert not policy.grants(ANONYMOUS_USER).decide(READY).allowed


async def test_aggregation_goes_on_after_a_failure(storage: ReadOnly) -> None:
    policy, failed = Policy(), asyncio.Event()

    async def fails(*_arguments: Any, **_keywords: Any) -> int:
        failed.set()
        return await _full()

    async with replica(storage, policy) as kept:
        await kept.roles.create(aggregate("sum", to="sum"), manager="test")
        storage.refuses, storage.refused = fails, ("update",)
        await kept.roles.create(role("part", rule("get"), labels={"to": "sum"}), manager="test")
        await asyncio.wait_for(failed.wait(), 30)
        assert not policy.role("sum")
        storage.refuses = None
        await eventually(lambda: bool(policy.role("sum")), seconds=30.0)


async def store_as_it_is(kept: Keepers, obj: dict[str, Any]) -> None:
    """As another program could, and no client."""
    metadata = {**obj["metadata"], "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z"}
    key, storage = kept.roles.store.prefix + metadata["name"], kept.roles.store.storage
    present, value = await storage.get(key), to_stored({**obj, "metadata": metadata})
    if present:
        await storage.update(key, value, expected=present.revision)
    else:
        await storage.create(key, value)


NO_OPERATOR = {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]}
NO_VERBS = {"verbs": [], "apiGroups": ["a"], "resources": ["b"]}


@pytest.mark.parametrize(
    "bad",
    [
        role("bad") | {"aggregationRule": NO_OPERATOR},
        role("bad") | {"aggregationRule": {}},
        aggregate("bad", to="bad"),
    ],
)
async def test_a_role_that_cannot_be_put_together_costs_no_other_its_rules(
    storage: ReadOnly, bad: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with keepers(storage) as kept:
        await store_as_it_is(kept, bad)
        await store_as_it_is(kept, role("part", labels={"to": "bad"}) | {"rules": [NO_VERBS]})
    policy = Policy()
    async with replica(storage, policy) as kept:
        assert policy.role("view")
        assert f"what is stored under '{kept.roles.store.prefix}bad'" in caplog.text
        assert "What to do" in caplog.text
        await kept.roles.create(aggregate("sum", to="sum"), manager="test")
        await kept.roles.create(role("other-part", rule("get"), labels={"to": "sum"}), manager="test")
        await eventually(lambda: bool(policy.role("sum")), seconds=30.0)
        assert caplog.text.count(f"what is stored under '{kept.roles.store.prefix}bad'") == 1


async def test_a_default_role_that_cannot_be_repaired_keeps_no_other_from_being_written(
    storage: ReadOnly, caplog: pytest.LogCaptureFixture
) -> None:
    async with keepers(storage) as kept:
        await store_as_it_is(kept, role("system:discovery") | {"rules": [NO_VERBS]})
    policy = Policy()
    async with replica(storage, policy) as kept:
        assert f"'{kept.roles.store.prefix}system:discovery' cannot be repaired" in caplog.text
        assert policy.role("view")
        await kept.roles.create(aggregate("sum", to="sum"), manager="test")
        await kept.roles.create(role("part", rule("get"), labels={"to": "sum"}), manager="test")
        await eventually(lambda: bool(policy.role("sum")), seconds=30.0)
