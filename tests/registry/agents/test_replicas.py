"""Bootstrap tokens on two replicas: what one of them has deleted counts on neither, however late its events are."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.object_bytes import decoded, to_stored
from clusterregistry.registry.bootstraptoken import bootstrap_token_resource
from clusterregistry.registry.bootstraptoken.tokens import BootstrapTokens
from tests.apiserver.storage.engines import LaggingEngine, SharedEngine
from tests.apiserver.storage.etcd_engine import EtcdEngine, eventually
from tests.registry.agents.stores import create, open_store
from tests.registry.agents.tokens import SECRET, token

ENGINES: dict[str, Callable[[Path], SharedEngine]] = {"etcd": EtcdEngine, "late events": LaggingEngine}
WHOLE = f"aaaaaa.{SECRET}"


@pytest.fixture(params=ENGINES)
async def replicas(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Store, Store]]:
    engine = ENGINES[request.param](tmp_path)
    async with AsyncExitStack() as stack:
        first = await engine.open()
        stack.push_async_callback(engine.close)
        resource = bootstrap_token_resource()
        one = await open_store(resource, first, stack)
        yield one, await open_store(resource, await engine.open_second(), stack)


async def user_of(store: Store, whole: str = WHOLE) -> User | None:
    found = BootstrapTokens(store).user_of(whole)
    return found if found is None or isinstance(found, User) else await found


async def made_on(one: Store, other: Store) -> None:
    """Makes the token on one replica, and waits until the other has heard of it."""
    await create(one, token("aaaaaa", "edge"))
    await eventually(lambda: other.storage.get_stale(other.prefix + "aaaaaa") is not None)


async def test_a_token_counts_on_every_replica(replicas: tuple[Store, Store]) -> None:
    one, other = replicas
    await made_on(one, other)
    for store in replicas:
        user = await user_of(store)
        assert user is not None
        assert user.name == "system:bootstrap:aaaaaa"


async def test_a_deleted_token_counts_nowhere_at_once(replicas: tuple[Store, Store]) -> None:
    one, other = replicas
    await made_on(one, other)
    await one.delete("aaaaaa", DeleteOptions())
    assert await user_of(other) is None
    assert await user_of(one) is None


async def test_a_token_of_the_same_name_has_another_secret(replicas: tuple[Store, Store]) -> None:
    one, other = replicas
    await made_on(one, other)
    await one.delete("aaaaaa", DeleteOptions())
    digest = hashlib.sha256(("z" * 32).encode()).hexdigest()
    await create(one, token("aaaaaa", "other", secretHash=f"sha256:{digest}"))
    assert await user_of(other) is None
    user = await user_of(one, "aaaaaa." + "z" * 32)
    assert user is not None


@pytest.mark.parametrize("stored", ["sha256:é", "sha256:", "md5:0", "", f"sha256:{'F' * 64}"])
async def test_a_hash_that_another_program_stored_matches_nothing(replicas: tuple[Store, Store], stored: str) -> None:
    one, other = replicas
    await made_on(one, other)
    kv = one.storage.get_stale(one.prefix + "aaaaaa")
    assert kv is not None
    obj = decoded(kv)
    obj["spec"]["secretHash"] = stored
    revision = await one.storage.update(kv.key, to_stored(obj), expected=kv.revision)
    await other.storage.wait_for(revision)
    for store in replicas:
        assert await user_of(store) is None
