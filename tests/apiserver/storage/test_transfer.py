"""Objects move from one store to another as they are, again and again, and nothing that is there is lost."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.storage import location as locations
from clusterregistry.apiserver.storage import transfer
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.location import EtcdLocation, SQLiteLocation
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.apiserver.storage.transfer import Copied, TargetNotEmpty, copy

VALUES = {f"/group/things/{number:03}": b'{"metadata":{"name":"%d",\n"uid":"u"}}' % number for number in range(10)}


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[tuple[Storage, Storage]]:
    """One to copy from, with VALUES in it and some history, and one to copy to."""
    async with AsyncExitStack() as stack:
        source, target = [await locations.open_location(SQLiteLocation(tmp_path / name)) for name in ("a.db", "b.db")]
        stack.push_async_callback(source.close)
        stack.push_async_callback(target.close)
        for key, value in VALUES.items():
            await source.create(key, value)
        await source.delete("/gone", expected=await source.create("/gone", b"{}"))
        yield source, target


@pytest.fixture(autouse=True)
def _several_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_PAGE", 4)
    monkeypatch.setattr(transfer, "_AT_ONCE", 3)


def ignore(_: int, __: int) -> None:
    pass


async def contents(storage: Storage) -> dict[str, bytes]:
    return {item.key: item.value for item in (await storage.list("/")).items}


async def test_all_that_exists_is_copied_byte_for_byte(stores: tuple[Storage, Storage]) -> None:
    source, target = stores
    copied = await copy(source, target, merge=False, progress=ignore)
    assert copied == Copied(revision=13, created=10)
    assert await contents(target) == await contents(source) == VALUES


async def test_progress_goes_from_the_first_to_the_last(stores: tuple[Storage, Storage]) -> None:
    told: list[tuple[int, int]] = []
    await copy(*stores, merge=False, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (10, 10)
    assert len(told) > 3


async def test_writes_to_the_source_meanwhile_are_not_copied_by_halves(stores: tuple[Storage, Storage]) -> None:
    source, target = stores

    class Moving:
        """A source to which somebody writes as soon as its first page is read."""

        async def list(self, prefix: str, **arguments: Any) -> Any:
            page = await source.list(prefix, **arguments)
            if "after" not in arguments:
                await source.create("/group/things/later", b"{}")
                await source.delete("/group/things/009", expected=11)
            return page

    moving: Any = Moving()
    assert (await copy(moving, target, merge=False, progress=ignore)).created == 10
    assert await contents(target) == VALUES


async def test_an_empty_store_is_copied_to_an_empty_store(tmp_path: Path, stores: tuple[Storage, Storage]) -> None:
    empty = await SQLiteStorage.open(tmp_path / "c.db")
    assert await copy(empty, stores[1], merge=False, progress=ignore) == Copied(revision=1)
    await empty.close()


async def test_a_copy_that_failed_half_way_can_be_run_again(stores: tuple[Storage, Storage]) -> None:
    source, target = stores

    class Failing:
        """A target that is gone after some creates."""

        left = 5
        list = target.list

        async def create(self, key: str, value: bytes) -> int:
            if not self.left:
                raise StorageUnavailable("gone")
            self.left -= 1
            return await target.create(key, value)

    failing: Any = Failing()
    with pytest.raises(StorageUnavailable, match="gone"):
        await copy(source, failing, merge=False, progress=ignore)
    assert 0 < target.count("/") < 10
    assert await copy(source, target, merge=False, progress=ignore) == Copied(revision=13, created=5, skipped=5)
    assert await contents(target) == VALUES


async def test_a_second_copy_changes_nothing(stores: tuple[Storage, Storage]) -> None:
    _, target = stores
    await copy(*stores, merge=False, progress=ignore)
    before = target.revision
    assert await copy(*stores, merge=False, progress=ignore) == Copied(revision=13, skipped=10)
    assert target.revision == before


@pytest.mark.parametrize(
    ("key", "foreign", "differing"),
    [("/mine", ["/mine"], []), ("/group/things/003", [], ["/group/things/003"])],
    ids=["another object", "the same with another value"],
)
async def test_a_target_that_is_not_empty_is_refused_before_anything_is_written(
    stores: tuple[Storage, Storage], key: str, foreign: list[str], differing: list[str]
) -> None:
    _, target = stores
    await target.create(key, b"mine")
    with pytest.raises(TargetNotEmpty) as refused:
        await copy(*stores, merge=False, progress=ignore)
    assert (refused.value.foreign, refused.value.differing) == (foreign, differing)
    assert await contents(target) == {key: b"mine"}


async def test_a_merge_adds_what_is_not_there_and_leaves_the_rest_alone(stores: tuple[Storage, Storage]) -> None:
    _, target = stores
    mine = {"/mine": b"mine", "/group/things/003": b"mine", "/group/things/004": VALUES["/group/things/004"]}
    for key, value in mine.items():
        await target.create(key, value)
    copied = await copy(*stores, merge=True, progress=ignore)
    assert copied == Copied(revision=13, created=8, skipped=1, differing=["/group/things/003"])
    assert await contents(target) == VALUES | mine


@pytest.mark.parametrize("value", [VALUES["/group/things/005"], b"another"])
async def test_a_key_that_somebody_creates_meanwhile_is_not_overwritten(
    stores: tuple[Storage, Storage], value: bytes
) -> None:
    source, target = stores

    class Busy:
        """A target to which somebody else writes just before we do."""

        list = target.list
        get = target.get

        async def create(self, key: str, mine: bytes) -> int:
            if key.endswith("005"):
                await target.create(key, value)
            return await target.create(key, mine)

    busy: Any = Busy()
    if value == b"another":
        with pytest.raises(TargetNotEmpty):
            await copy(source, busy, merge=False, progress=ignore)
    else:
        assert (await copy(source, busy, merge=False, progress=ignore)).skipped == 1
    assert await contents(target) == VALUES | {"/group/things/005": value}


# Places


def etcd(*endpoints: str, tls: bool = False) -> EtcdLocation:
    return EtcdLocation(EtcdSettings(endpoints=endpoints, tls=tls))


@pytest.mark.parametrize(
    ("text", "location", "shown"),
    [
        ("sqlite:/data/registry.db", SQLiteLocation(Path("/data/registry.db")), "sqlite:/data/registry.db"),
        ("sqlite:registry.db", SQLiteLocation(Path.cwd() / "registry.db"), f"sqlite:{Path.cwd()}/registry.db"),
        ("sqlite:~/r.db", SQLiteLocation(Path.home() / "r.db"), f"sqlite:{Path.home()}/r.db"),
        ("etcd:10.0.0.1:2379", etcd("10.0.0.1:2379"), "etcd:http://10.0.0.1:2379"),
        ("etcd:one, two:2380", etcd("one:2379", "two:2380"), "etcd:http://one:2379,http://two:2380"),
        ("etcd:http://one:1/", etcd("one:1"), "etcd:http://one:1"),
        ("etcd:https://[::1]:2379", etcd("[::1]:2379", tls=True), "etcd:https://[::1]:2379"),
    ],
)
def test_a_place_is_read_and_shown(text: str, location: locations.Location, shown: str) -> None:
    assert locations.parse(text) == location
    assert str(location) == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "write sqlite:FILE or etcd:"),
        ("registry.db", "is not a place"),
        ("postgres:db", "is not a place"),
        ("sqlite:", "names nothing"),
        ("etcd: ", "names nothing"),
        ("sqlite:/", "is a directory: name the file in it"),
        ("sqlite:~nobody-of-this-name/r.db", "home directory"),
        ("etcd:one:port", "is not an endpoint"),
        ("etcd:one:99999", "is not an endpoint"),
        ("etcd:one,,two", "is not an endpoint"),
        ("etcd:ftp://one", "is not an endpoint"),
        ("etcd:one/path", "is not an endpoint"),
        ("etcd:http://one,https://two", "mixes endpoints"),
        ("etcd:https://root:secret@one", "must not hold a user or a password"),
    ],
)
def test_what_is_no_place_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        locations.parse(text)
    assert "secret" not in str(refused.value)
