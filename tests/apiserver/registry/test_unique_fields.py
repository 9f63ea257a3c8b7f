"""Unique fields over every engine: whoever writes what at once, no two objects ever have the same value."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.registry.columns import field_cell
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.store import Store, UpdateRequest
from clusterregistry.apiserver.registry.unique_fields import Duplicate
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Storage
from clusterregistry.apiserver.storage.object_bytes import decoded, presented, to_stored
from tests.apiserver.controllers.sample_stores import API_VERSION, sample_resource
from tests.apiserver.storage.engines import SHARED, SOLE_WRITERS, Engine, SharedEngine, settled

RACERS = 100
FIELD = "spec.note"


def note_of(obj: dict[str, Any]) -> str:
    found = field_cell("spec", "note")(obj)
    return found if isinstance(found, str) else ""


BOAT = sample_resource("Boat", unique_fields={FIELD: note_of})
PREFIX = interface.prefix_of(BOAT.group, BOAT.plural)

# The cache is part of what is tested, so engines with a cache of their own add nothing.
SOLE = {"sqlite": SOLE_WRITERS["sqlite"]}
REPLICATED = {"etcd": SHARED["etcd"]}


def boat(name: str, note: str | None = None, **metadata: Any) -> dict[str, Any]:
    spec = {} if note is None else {"spec": {"note": note}}
    return {"apiVersion": API_VERSION, "kind": "Boat", "metadata": {"name": name, **metadata}, **spec}


class Replica:
    """One server's store of boats."""

    def __init__(self, storage: Storage, store: Store) -> None:
        self.storage, self.store = storage, store

    async def create(self, name: str, note: str | None = None, *, dry_run: bool = False, **metadata: Any) -> KeyValue:
        return await self.store.create(boat(name, note, **metadata), dry_run=dry_run, warn=print)

    async def update(self, name: str, *, dry_run: bool = False, **fields: Any) -> KeyValue:
        """Replaces the spec, or a part of the metadata."""

        def change(old: dict[str, Any] | None) -> dict[str, Any]:
            if old is None:
                raise self.store.not_found(name)
            spec = {"spec": fields["spec"]} if "spec" in fields else {}
            return {
                **old,
                **spec,
                "metadata": {**old["metadata"], "resourceVersion": "0", **fields.get("metadata", {})},
            }

        request = UpdateRequest(change=change, strategy=self.store.strategy, dry_run=dry_run, warn=print)
        return (await self.store.update(name, request)).kv

    async def delete(self, name: str) -> None:
        await self.store.delete(name, DeleteOptions())

    async def notes(self) -> dict[str, str]:
        page = await self.store.storage.list(PREFIX)
        return {self.store.key_in(kv): note_of(decoded(kv)) for kv in page.items}


async def replica(storage: Storage, stack: AsyncExitStack, resource: Resource = BOAT) -> Replica:
    cacher = await Cacher.open(storage, PREFIX, present=presented)
    stack.push_async_callback(cacher.close)
    return Replica(storage, Store(resource, cacher, now=times.present, corrupt=cacher.corrupt))


@pytest.fixture(params=[*SOLE, *REPLICATED])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    engine = {**SOLE, **REPLICATED}[request.param](tmp_path)
    yield engine
    await engine.close()


@pytest.fixture
async def boats(engine: Engine) -> AsyncIterator[Replica]:
    async with AsyncExitStack() as stack:
        yield await replica(await engine.open(), stack)


@pytest.fixture(params=[*REPLICATED, "lagging"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Replica, Replica]]:
    made: Callable[[Path], SharedEngine] = (
        SHARED["lagging-cacher"] if request.param == "lagging" else REPLICATED[request.param]
    )
    engine = made(tmp_path)
    if request.param == "lagging":
        engine = engine.inner  # type: ignore[attr-defined]  # without the cache, which ``replica`` adds
    async with AsyncExitStack() as stack:
        yield await replica(await engine.open(), stack), await replica(await engine.open_second(), stack)
    await engine.close()


async def refusal(write: Awaitable[Any]) -> dict[str, Any]:
    with pytest.raises(APIError) as refused:
        await write
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    (cause,) = refused.value.status["details"]["causes"]
    found: dict[str, Any] = cause
    return found


def some_write(boats: Replica, chance: random.Random) -> Awaitable[object]:
    """A write of one of few boats and notes."""
    name, note = f"boat-{chance.randrange(6)}", chance.choice(["x", "y", "z", ""])
    match chance.randrange(4):
        case 0:
            return boats.create(name, note)
        case 1:
            return boats.update(name, spec={"note": note})
        case 2:
            return boats.update(name, metadata={"labels": {"l": note}})
        case _:
            return boats.delete(name)


async def outcome(write: Awaitable[object]) -> int:
    try:
        await write
    except APIError as error:
        return error.code
    return 200


def violations(events: Sequence[Event]) -> list[str]:
    """The values that two objects had at the same time, in a history from its beginning."""
    now: dict[str, str] = {}
    found = []
    for event in events:
        note = note_of(decoded(presented(event.current))) if event.current else ""
        if note and note in (each for key, each in now.items() if key != event.key):
            found.append(f"revision {event.revision}: {event.key} has {note}, which another one has")
        now[event.key] = note
    return found


# One server


async def test_a_second_object_with_the_value_is_refused_as_kubernetes_words_it(boats: Replica) -> None:
    await boats.create("a", "x")
    cause = await refusal(boats.create("b", "x"))
    assert cause == {"reason": "FieldValueDuplicate", "message": 'Duplicate value: "x"', "field": FIELD}
    with pytest.raises(APIError) as refused:
        await boats.create("b", "x")
    assert refused.value.status["message"] == f'Boat.{BOAT.group} "b" is invalid: {FIELD}: Duplicate value: "x"'
    assert await boats.notes() == {"a": "x"}


async def test_an_object_gets_a_value_by_an_update_only_if_no_other_has_it(boats: Replica) -> None:
    await boats.create("a", "x")
    await boats.create("b")
    await refusal(boats.update("b", spec={"note": "x"}))
    await boats.update("b", spec={"note": "y"})
    await refusal(boats.update("a", spec={"note": "y"}))
    assert await boats.notes() == {"a": "x", "b": "y"}


async def test_values_that_are_absent_or_empty_are_shared(boats: Replica) -> None:
    for name, note in {"a": None, "b": None, "c": "", "d": ""}.items():
        await boats.create(name, note)
    await boats.update("a", spec={"note": ""})
    assert len(await boats.notes()) == 4


@pytest.mark.parametrize(
    "note", ['with "quotes"', "back\\slash\\", 'end\\"', "Ünïcode \u2028", "x" * 5000, '","note":"']
)
async def test_a_value_may_be_any_text(boats: Replica, note: str) -> None:
    await boats.create("a", note)
    await refusal(boats.create("b", note))
    await boats.create("c", note + "c")
    await boats.update("c", spec={"note": note + "d"})
    await boats.create("d", note + "c")
    await refusal(boats.update("a", spec={"note": note + "d"}))


async def test_a_value_is_free_again_once_its_object_is_deleted_or_has_another(boats: Replica) -> None:
    await boats.create("a", "x")
    await boats.delete("a")
    await boats.create("b", "x")
    await boats.update("b", spec={"note": "y"})
    await boats.create("c", "x")
    assert await boats.notes() == {"b": "y", "c": "x"}


async def test_an_object_that_waits_for_finalizers_keeps_its_value(boats: Replica) -> None:
    await boats.create("a", "x", finalizers=["example.com/hold"])
    await boats.delete("a")
    await refusal(boats.create("b", "x"))
    await boats.update("a", metadata={"finalizers": []})
    await boats.create("b", "x")
    assert await boats.notes() == {"b": "x"}


async def test_the_same_object_again_is_a_conflict_of_names(boats: Replica) -> None:
    await boats.create("a", "x")
    with pytest.raises(APIError, match="already exists"):
        await boats.create("a", "x")


async def test_a_dry_run_is_refused_alike_and_takes_no_value(boats: Replica) -> None:
    await boats.create("a", "x")
    await boats.create("b")
    await refusal(boats.create("c", "x", dry_run=True))
    await refusal(boats.update("b", dry_run=True, spec={"note": "x"}))
    await boats.create("c", "y", dry_run=True)
    await boats.update("b", dry_run=True, spec={"note": "y"})
    await boats.create("d", "y")


async def test_of_many_creates_at_once_with_one_value_exactly_one_is_done(boats: Replica) -> None:
    outcomes = await asyncio.gather(
        *(boats.create(f"boat-{each}", "x") for each in range(RACERS)), return_exceptions=True
    )
    refused = [each for each in outcomes if isinstance(each, APIError)]
    assert [each.code for each in refused] == [422] * (RACERS - 1)
    assert len(await boats.notes()) == 1


async def test_many_creates_at_once_with_values_of_their_own_are_all_done(boats: Replica) -> None:
    await asyncio.gather(*(boats.create(f"boat-{each}", f"note {each}") for each in range(RACERS)))
    assert len(set((await boats.notes()).values())) == RACERS


async def test_a_write_that_leaves_the_value_alone_has_no_guard(
    boats: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    await boats.create("a", "x")
    await boats.create("b")
    guarded: list[str] = []
    update = boats.storage.update

    async def recorded(key: str, value: bytes, **named: Any) -> int:
        guarded.extend(guard.name for guard in named["guards"])
        return await update(key, value, **named)

    monkeypatch.setattr(boats.storage, "update", recorded)
    await boats.update("a", metadata={"labels": {"l": "1"}})
    await boats.update("a", spec={"note": "x", "size": 3})
    await boats.update("b", spec={"size": 3})
    assert guarded == []
    await boats.update("b", spec={"note": "y"})
    assert len(guarded) == 1
    await boats.update("b", spec={})
    assert len(guarded) == 1


# What was stored before


async def store_duplicates(storage: Storage) -> None:
    """As a release without unique fields stores them."""
    for name in ("one", "two"):
        obj = boat(name, "same", uid=f"uid-{name}", creationTimestamp="2026-01-01T00:00:00Z")
        await storage.create(PREFIX + name, to_stored(obj))


async def test_objects_that_have_the_same_value_already_are_served_written_and_reported(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    storage = await engine.open()
    await store_duplicates(storage)
    async with AsyncExitStack() as stack:
        boats = await replica(storage, stack)
        with caplog.at_level(logging.WARNING):
            await boats.store.unique.report()
        (found,) = boats.store.unique.duplicates
        assert found == Duplicate(FIELD, "same", [f"{PREFIX}one", f"{PREFIX}two"])
        assert str(found) in caplog.text
        await boats.update("one", metadata={"labels": {"l": "1"}})
        await refusal(boats.create("three", "same"))
        await boats.delete("one")
        await settled(boats.store.storage)
        assert boats.store.unique.duplicates == []
        await refusal(boats.create("three", "same"))
        await boats.delete("two")
        await boats.create("three", "same")


async def test_a_start_finds_the_values_of_the_one_before(engine: Engine) -> None:
    async with AsyncExitStack() as stack:
        boats = await replica(await engine.open(), stack)
        await boats.create("a", "x")
    await engine.close()
    async with AsyncExitStack() as stack:
        boats = await replica(await engine.open(), stack)
        await refusal(boats.create("b", "x"))
        await boats.delete("a")
        await boats.create("b", "x")


async def test_after_a_gap_the_values_are_read_again(boats: Replica) -> None:
    await boats.create("a", "x")
    await boats.create("b", "y")
    boats.store.unique._forget()
    await refusal(boats.create("c", "x"))
    await boats.delete("a")
    boats.store.unique._forget()
    await boats.create("c", "x")


# Two servers


async def test_of_creates_at_two_servers_exactly_one_is_done(pair: tuple[Replica, Replica]) -> None:
    creates = [pair[each % 2].create(f"boat-{each}", "x") for each in range(RACERS)]
    outcomes = await asyncio.gather(*creates, return_exceptions=True)
    assert [each.code for each in outcomes if isinstance(each, APIError)] == [422] * (RACERS - 1)
    assert len(await pair[0].notes()) == 1


async def test_a_value_that_another_server_set_free_is_free_at_once(pair: tuple[Replica, Replica]) -> None:
    for turn in range(20):
        one, other = pair[turn % 2], pair[1 - turn % 2]
        await one.create(f"boat-{turn}", "x")
        await refusal(other.create("late", "x"))
        await one.delete(f"boat-{turn}")
        await other.create("late", "x")
        await one.delete("late")


async def test_whatever_two_servers_write_no_two_objects_ever_have_the_same_value(
    pair: tuple[Replica, Replica],
) -> None:
    chance = random.Random(19)
    begun = await pair[0].storage.current_revision()
    codes: Counter[int] = Counter()

    async def write_some(seed: int) -> None:
        own = random.Random(seed)
        for _ in range(60):
            codes[await outcome(some_write(own.choice(pair), own))] += 1

    await asyncio.gather(*(write_some(chance.randrange(1 << 30)) for _ in range(8)))
    for boats in pair:
        await settled(boats.storage)
    history = await pair[0].storage.history(PREFIX, after=begun)
    assert violations(history) == []
    assert codes[200]
    assert codes[422]
    assert codes.keys() <= {200, 404, 409, 422}


def test_two_objects_with_one_value_are_found_in_a_history() -> None:
    def event(revision: int, name: str, note: str | None) -> Event:
        current = None if note is None else KeyValue(PREFIX + name, to_stored(boat(name, note, uid="u")), revision)
        return Event(PREFIX + name, revision, current, None)

    clean = [event(2, "a", "x"), event(3, "b", "y"), event(4, "a", None), event(5, "b", "x"), event(6, "a", "")]
    assert violations(clean) == []
    assert len(violations([*clean, event(7, "c", "x")])) == 1
    assert len(violations([event(2, "a", "x"), event(3, "b", "y"), event(4, "b", "x")])) == 1
