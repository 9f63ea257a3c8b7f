"""The index of groups equals the plain evaluation of all definitions over all objects, whatever happens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.label_selectors import LabelSelector, parse_label_selector
from clusterregistry.apiserver.registry.group_index import GroupIndex
from clusterregistry.apiserver.registry.object_groups import Grouping, Members
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page, Storage
from clusterregistry.apiserver.storage.object_bytes import presented, to_stored
from clusterregistry.apiserver.storage.subscriptions import Subscriptions
from tests.apiserver.controllers.sample_stores import GROUP, sample_resource
from tests.apiserver.storage.engines import SHARED, SOLE_WRITERS, Engine, SharedEngine, settled


def members_of(convoy: dict[str, Any]) -> Members:
    """``spec.note`` holds a selector, or nothing; ``spec.names`` holds names."""
    spec = convoy["spec"]
    selector = parse_label_selector(spec["note"]) if "note" in spec else None
    return Members(selector, frozenset(spec.get("names", ())))


CONVOYS = Grouping(group=GROUP, plural="convoys", subresource="boats", members_of=members_of)
BOAT, CONVOY = sample_resource("Boat", grouped_by=CONVOYS), sample_resource("Convoy")


def test_rights_on_a_subresource_of_a_member_have_a_name_of_their_own() -> None:
    assert CONVOYS.qualified_name == f"convoys.{GROUP}"
    assert CONVOYS.subresource_for("") == "boats"
    assert CONVOYS.subresource_for("status") == "boats-status"


# Stores in memory: any history, in no time --------------------------------------------------------------------------


class Memory:
    """What the index needs of a storage, with the events and the lists of one moment."""

    def __init__(self) -> None:
        self.revision = 0
        self.values: dict[str, KeyValue] = {}
        self._subscriptions = Subscriptions()
        self.subscribe = self._subscriptions.subscribe

    async def list(self, prefix: str) -> Page:
        return Page([kv for key, kv in sorted(self.values.items()) if key.startswith(prefix)], self.revision, 0)

    async def wait_for(self, revision: int) -> None:
        assert revision <= self.revision

    def put(self, key: str, obj: dict[str, Any] | None) -> None:
        """Writes an object; None deletes it."""
        previous = self.values.pop(key, None)
        if obj is None and previous is None:
            return
        self.revision += 1
        current = None
        if obj is not None:
            name = key.rpartition("/")[2]
            whole = {**obj, "metadata": {"name": name, "uid": "u", **obj.get("metadata", {})}}
            current = self.values[key] = presented(KeyValue(key, to_stored(whole), self.revision))
        self._subscriptions.publish([Event(key, self.revision, current, previous)])


class Harbour:
    """Stores of boats and convoys over one memory, with short ways to write."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.boats = Store(BOAT, self.memory, now=times.present)  # type: ignore[arg-type]  # what the index needs
        self.convoys = Store(CONVOY, self.memory, now=times.present)  # type: ignore[arg-type]

    def boat(self, name: str, labels: Mapping[str, str] | None) -> None:
        obj = None if labels is None else {"metadata": {"labels": dict(labels)} if labels else {}}
        self.memory.put(self.boats.prefix + name, obj)

    def convoy(self, name: str, selector: str | None = None, names: Sequence[str] = (), **more: Any) -> None:
        spec = {"names": list(names)} if selector is None else {"names": list(names), "note": selector}
        self.memory.put(self.convoys.prefix + name, {"spec": spec, **more})

    def disband(self, name: str) -> None:
        self.memory.put(self.convoys.prefix + name, None)

    async def index(self) -> GroupIndex:
        return await GroupIndex.open(self.boats, self.convoys, CONVOYS)


NAMES = st.sampled_from(["a", "b", "c", "d"])
CONVOY_NAMES = st.sampled_from(["north", "south", "west"])
LABELS = st.dictionaries(st.sampled_from(["x", "y", "z"]), st.sampled_from(["", "1", "2"]))
SELECTORS = st.none() | st.lists(
    st.sampled_from(
        ["x", "!x", "x=1", "x!=1", "x=", "x in (1,2)", "x notin (1,2)", "x notin ()", "y", "!y", "y=2", "z>1", "z<2"]
    ),
    max_size=3,
).map(",".join)
WRITES = st.lists(
    st.tuples(st.just("boat"), NAMES, st.none() | LABELS)
    | st.tuples(st.just("convoy"), CONVOY_NAMES, SELECTORS, st.lists(NAMES, max_size=2))
    | st.tuples(st.just("disband"), CONVOY_NAMES),
    max_size=40,
)


def labels_of(kv: KeyValue) -> dict[str, str]:
    found: dict[str, str] = orjson.loads(kv.value)["metadata"].get("labels", {})
    return found


def evaluated(values: Mapping[str, KeyValue]) -> dict[str, set[str]]:
    """The members of all convoys by their definitions."""
    boats = {key.rpartition("/")[2]: labels_of(kv) for key, kv in values.items() if "/boats/" in key}
    convoys = {key.rpartition("/")[2]: orjson.loads(kv.value) for key, kv in values.items() if "/convoys/" in key}
    return {
        convoy: {name for name, labels in boats.items() if members_of(obj).has(name, labels)}
        for convoy, obj in convoys.items()
    }


def assert_equal(index: GroupIndex, values: Mapping[str, KeyValue]) -> None:
    wanted = evaluated(values)
    assert set(index.names) == set(wanted)
    assert {group: set(index.members({group})) for group in wanted} == wanted
    assert {group: index.count(group) for group in wanted} == {group: len(found) for group, found in wanted.items()}
    assert index.members(wanted.keys()) == set().union(*wanted.values())
    for key, kv in values.items():
        if "/boats/" in key:
            name = key.rpartition("/")[2]
            groups = {group for group, found in wanted.items() if name in found}
            assert index.groups_of_object(kv) == index.groups_of(name, labels_of(kv)) == groups


@given(WRITES, WRITES)
def test_after_any_history_the_index_equals_the_plain_evaluation(
    before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]
) -> None:
    """The first writes are there when the index is opened, the others come as events."""
    harbour = Harbour()
    for kind, *what in before:
        getattr(harbour, kind)(*what)
    index = asyncio.run(harbour.index())
    assert_equal(index, harbour.memory.values)
    for kind, *what in after:
        getattr(harbour, kind)(*what)
        assert_equal(index, harbour.memory.values)
    for name in list(index.names):
        harbour.disband(name)
    assert not index.names
    assert not index._labels._having, "labels that no selector names are still indexed"
    assert not index._definitions._by_fact
    assert not index._definitions._others
    assert not index._groups


@given(WRITES, WRITES)
def test_listeners_hear_of_every_change_and_of_nothing_else(
    before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]
) -> None:
    harbour = Harbour()
    for kind, *what in before:
        getattr(harbour, kind)(*what)
    index = asyncio.run(harbour.index())
    touched: set[str] = set()
    definitions: list[int] = []
    index.on_members_change(touched.update)
    index.on_change(lambda: definitions.append(harbour.memory.revision))
    for kind, *what in after:
        seen = {name: (index.definition(name), frozenset(index.members({name}))) for name in index.names}
        revision = harbour.memory.revision
        touched.clear()
        definitions.clear()
        getattr(harbour, kind)(*what)
        now = {name: (index.definition(name), frozenset(index.members({name}))) for name in index.names}
        changed = {name for name in seen | now if seen.get(name) != now.get(name)}
        assert touched == changed
        redefined = {name for name in changed if seen.get(name, (None,))[0] != now.get(name, (None,))[0]}
        assert definitions == ([harbour.memory.revision] if redefined else [])
        for name in redefined:
            assert index.changed_at({name}) == index.changed_at() == harbour.memory.revision
        assert index.changed_at(seen.keys() | now.keys()) <= (harbour.memory.revision if redefined else revision)


async def test_an_earlier_state_of_an_object_is_evaluated_by_its_own_labels() -> None:
    harbour = Harbour()
    harbour.convoy("north", "x=1")
    harbour.boat("a", {"x": "1"})
    index = await harbour.index()
    earlier = harbour.memory.values[harbour.boats.prefix + "a"]
    harbour.boat("a", {"x": "2"})
    now = harbour.memory.values[harbour.boats.prefix + "a"]
    for _ in range(2):
        assert (index.groups_of_object(earlier), index.groups_of_object(now)) == (frozenset({"north"}), frozenset())
    # By the definitions of now, though it was evaluated before.
    harbour.convoy("north", "x=2")
    assert (index.groups_of_object(earlier), index.groups_of_object(now)) == (frozenset(), frozenset({"north"}))


async def test_the_groups_that_name_an_object_are_known_whether_it_exists_or_not() -> None:
    harbour = Harbour()
    harbour.convoy("north", "x", names=["a", "b"])
    harbour.convoy("south", "!x", names=["b"])
    harbour.boat("a", {"x": "1"})
    index = await harbour.index()
    both = frozenset({"north", "south"})
    assert [index.naming(name) for name in "abc"] == [frozenset({"north"}), both, frozenset()]


async def test_equal_groups_of_objects_are_one_instance() -> None:
    harbour = Harbour()
    harbour.convoy("north", "x")
    for name in "abc":
        harbour.boat(name, {"x": "1"})
    index = await harbour.index()
    boats = [kv for key, kv in harbour.memory.values.items() if "/boats/" in key]
    assert len({id(index.groups_of_object(kv)) for kv in boats}) == 1


async def test_names_that_no_object_has_are_known() -> None:
    harbour = Harbour()
    harbour.convoy("north", names=["c", "a", "b"])
    harbour.boat("b", {})
    index = await harbour.index()
    assert index.absent_names("north") == ["a", "c"]
    harbour.boat("c", {})
    assert index.absent_names("north") == ["a"]
    assert index.absent_names("none") == []


async def test_a_change_of_status_or_of_labels_of_a_group_is_no_change_of_its_definition() -> None:
    harbour = Harbour()
    harbour.convoy("north", "x=1")
    index = await harbour.index()
    heard: list[None] = []
    index.on_change(lambda: heard.append(None))
    index.on_members_change(lambda _: heard.append(None))
    changed_at = index.changed_at({"north"})
    harbour.convoy("north", "x=1", status={"count": 1}, metadata={"labels": {"x": "1"}})
    assert (heard, index.changed_at({"north"})) == ([], changed_at)


async def test_a_group_that_cannot_be_read_has_no_members_and_the_others_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harbour = Harbour()
    harbour.boat("a", {})
    harbour.convoy("north", "x in (")
    harbour.convoy("south", "")
    index = await harbour.index()
    assert (index.count("north"), index.count("south")) == (0, 1)
    assert "/convoys/north" in caplog.text
    harbour.convoy("north", "!x")
    assert index.count("north") == 1


async def test_after_a_start_a_definition_counts_as_changed_by_then() -> None:
    harbour = Harbour()
    harbour.convoy("north", "x")
    harbour.boat("a", {})
    index = await harbour.index()
    assert index.changed_at({"north"}) == index.changed_at({"gone"}) == index.changed_at() == 2
    harbour.convoy("south", "x")
    assert (index.changed_at({"north"}), index.changed_at({"north", "south"}), index.changed_at()) == (2, 3, 3)
    assert index.changed_at(frozenset()) == 2


async def test_a_closed_index_and_an_ended_listener_hear_nothing() -> None:
    harbour = Harbour()
    index = await harbour.index()
    heard: list[int] = []
    end = index.on_change(lambda: heard.append(1))
    end()
    end()
    harbour.convoy("north", "x")
    assert (heard, set(index.names)) == ([], {"north"})
    index.close()
    index.close()
    harbour.convoy("south", "x")
    assert set(index.names) == {"north"}


# Over the engines: gaps, replicas, restarts -------------------------------------------------------------------------

ENGINES = {"sqlite": SOLE_WRITERS["sqlite"], "etcd": SHARED["etcd"]}
OBJECTS = ["a", "b", "c", "d", "e", "f"]


class Replica:
    """One server's stores of boats and convoys, and its index."""

    def __init__(self, storage: Storage, boats: Store, convoys: Store) -> None:
        self.storage, self.boats, self.convoys = storage, boats, convoys
        self.index: GroupIndex

    async def values(self) -> dict[str, KeyValue]:
        found = [*(await self.boats.storage.list(self.boats.prefix)).items]
        found += (await self.convoys.storage.list(self.convoys.prefix)).items
        return {kv.key: kv for kv in found}

    async def put(self, store: Store, name: str, obj: dict[str, Any] | None) -> int:
        key = store.prefix + name
        present = await self.storage.get(key)
        if obj is None:
            return await self.storage.delete(key, expected=present.revision) if present else 0
        value = to_stored({**obj, "metadata": {"name": name, "uid": "u", **obj.get("metadata", {})}})
        if present is None:
            return await self.storage.create(key, value)
        return await self.storage.update(key, value, expected=present.revision)

    async def boat(self, name: str, labels: Mapping[str, str] | None) -> int:
        return await self.put(self.boats, name, None if labels is None else {"metadata": {"labels": dict(labels)}})

    async def convoy(self, name: str, selector: str | None, names: Sequence[str] = ()) -> int:
        obj = None if selector is None else {"spec": {"note": selector, "names": list(names)}}
        return await self.put(self.convoys, name, obj)

    async def write_something(self, chance: random.Random) -> int:
        if chance.random() < 0.7:
            labels = {each: chance.choice("12") for each in chance.sample("xyz", chance.randrange(4))}
            return await self.boat(chance.choice(OBJECTS), labels if chance.random() < 0.8 else None)
        selector = chance.choice([None, "x=1", "x", "!y", "y notin (1)", "x=1,z", "", "x in (1,2),!z"])
        return await self.convoy(chance.choice(["north", "south"]), selector, chance.sample(OBJECTS, 2))


async def replica(storage: Storage, stack: AsyncExitStack) -> Replica:
    stores = []
    for resource in (BOAT, CONVOY):
        prefix = interface.prefix_of(resource.group, resource.plural)
        cacher = await Cacher.open(storage, prefix, present=presented)
        stack.push_async_callback(cacher.close)
        stores.append(Store(resource, cacher, now=times.present, corrupt=cacher.corrupt))
    made = Replica(storage, *stores)
    made.index = await GroupIndex.open(made.boats, made.convoys, CONVOYS)
    stack.callback(made.index.close)
    return made


@pytest.fixture(params=list(ENGINES))
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    engine = ENGINES[request.param](tmp_path)
    yield engine
    await engine.close()


@pytest.fixture(params=["etcd", "lagging"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Replica, Replica]]:
    made: SharedEngine = SHARED["lagging-cacher" if request.param == "lagging" else "etcd"](tmp_path)
    engine = made.inner if request.param == "lagging" else made  # type: ignore[attr-defined]  # the replica has a cache
    async with AsyncExitStack() as stack:
        yield await replica(await engine.open(), stack), await replica(await engine.open_second(), stack)
    await engine.close()


async def test_a_write_counts_once_its_revision_is_reached(engine: Engine) -> None:
    async with AsyncExitStack() as stack:
        one = await replica(await engine.open(), stack)
        await one.index.caught_up(await one.convoy("north", "x=1"))
        assert set(one.index.names) == {"north"}
        await one.index.caught_up(await one.boat("a", {"x": "1"}))
        assert one.index.members({"north"}) == {"a"}
        await one.index.caught_up(await one.boat("a", {"x": "2"}))
        assert one.index.members({"north"}) == frozenset()


async def test_an_index_that_is_opened_between_writes_misses_none(engine: Engine) -> None:
    async with AsyncExitStack() as stack:
        one, chance = await replica(await engine.open(), stack), random.Random(3)
        await one.convoy("north", "x=1")

        async def write_all() -> None:
            for _ in range(60):
                await one.write_something(chance)

        writing = asyncio.create_task(write_all())
        opened = [await replica(one.storage, stack) for _ in range(5)]
        await writing
        await settled(one.storage)
        for each in [one, *opened]:
            await each.index.caught_up(await one.storage.current_revision())
            assert_equal(each.index, await one.values())


async def test_two_replicas_have_the_same_members_whichever_wrote(pair: tuple[Replica, Replica]) -> None:
    chance = random.Random(5)
    for _ in range(80):
        await chance.choice(pair).write_something(chance)
    revision = await pair[0].storage.current_revision()
    for each in pair:
        await settled(each.storage)
        await each.index.caught_up(revision)
        assert_equal(each.index, await pair[0].values())


async def test_after_lost_events_the_members_are_right_again(engine: Engine) -> None:
    async with AsyncExitStack() as stack:
        one, chance = await replica(await engine.open(), stack), random.Random(7)
        for _ in range(30):
            await one.write_something(chance)
        await settled(one.storage)
        cachers = [store.storage for store in (one.boats, one.convoys) if isinstance(store.storage, Cacher)]
        for cacher in cachers:
            cacher._feed.close()
        for _ in range(30):
            await one.write_something(chance)
        last = await one.convoy("late", "x")
        await settled(one.storage)
        for cacher in cachers:
            cacher._feed = one.storage.subscribe(cacher._prefix, cacher._receive, interrupted=cacher._reload)
            cacher._reload()
            assert cacher._reloading
            await cacher._reloading
        assert_equal(one.index, await one.values())
        assert one.index.changed_at({"north"}) >= last, "what changed in between is not known"


def test_members_are_named_or_selected() -> None:
    everything, nothing = Members(LabelSelector(())), Members()
    assert everything.has("a", None)
    assert not nothing.has("a", {"x": "1"})
    both = Members(parse_label_selector("x=1"), frozenset({"b"}))
    assert [both.has("a", {"x": "1"}), both.has("b", {}), both.has("c", {})] == [True, True, False]
