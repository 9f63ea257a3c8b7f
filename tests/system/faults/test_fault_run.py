"""Half a minute of harm to members and replicas, and violations planted in the record of it.

``make fault-test`` is the same for five minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import pytest

from tests.apiserver.storage.etcd_servers import RUNS_HERE
from tests.system.faults.fault_run import Struck, shown, strike
from tests.system.faults.faults import Fault
from tests.system.faults.records import (
    Action,
    Change,
    Intent,
    Kind,
    Operation,
    Outcome,
    Record,
    Result,
    Sight,
    Value,
    WatchRecord,
)
from tests.system.faults.verdict import check

SECONDS = 30
SEED = 7

T = TypeVar("T")

# The first to ask for the run waits for it.
pytestmark = [
    pytest.mark.skipif(not RUNS_HERE, reason="the packaged etcd is for linux/amd64"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Struck:
    directory = tmp_path_factory.mktemp("site")
    progress: list[str] = []
    done = asyncio.run(strike(directory, seconds=SECONDS, seed=SEED, say=progress.append))
    report = "\n".join([*progress, shown(done.strikes), done.verdict.report(), f"the record is in {directory}"])
    assert done.verdict.violations == [], report
    return done


def test_answers_stay_linearizable_while_replicas_and_members_fail(struck: Struck) -> None:
    # Enough happened for that to mean something, at each end of the store and through each kind of request.
    assert struck.verdict.acknowledged > 50
    assert struck.verdict.connections > len(struck.record.watches)
    assert struck.verdict.in_namespaces > 20
    assert struck.verdict.removed_namespaces > 0
    assert any("replica" in kind for kind in struck.strikes)
    assert any("leader" in kind or "follower" in kind for kind in struck.strikes)
    assert struck.strikes["wrote a foreign value"] > 0
    assert {action for action, result in struck.verdict.outcomes if result is Result.OK} == set(Action)


# Violations planted in a copy of the record: each must be found


@pytest.fixture
def record(struck: Struck) -> Record:
    watches = [replace(watch, sights=list(watch.sights)) for watch in struck.record.watches]
    return replace(struck.record, operations=list(struck.record.operations), watches=watches)


def faults(record: Record) -> set[Fault]:
    return {violation.fault for violation in check(record, sole_writer=False).violations}


def in_the_midst_of(found: Iterable[T]) -> T:
    listed = list(found)
    return listed[len(listed) // 2]


def acknowledged(record: Record, *actions: Action) -> list[Operation]:
    return [each for each in record.operations if each.acknowledged and each.intent.action in actions]


def watch_of(record: Record, name: str) -> WatchRecord:
    return next(watch for watch in record.watches if watch.name == name)


def some_change(watch: WatchRecord) -> int:
    """The place of a change in the record of a watch."""
    return in_the_midst_of(index for index, sight in enumerate(watch.sights) if sight.change)


def forget(record: Record, where: Callable[[Change], bool]) -> None:
    """Removes changes from all watches, as if they had never happened."""
    for watch in record.watches:
        watch.sights = [sight for sight in watch.sights if sight.change is None or not where(sight.change)]


def exchange(record: Record, operation: Operation, outcome: Outcome) -> Record:
    """As if the operation had been answered otherwise."""
    changed = [replace(each, outcome=outcome) if each is operation else each for each in record.operations]
    return replace(record, operations=changed)


@pytest.mark.parametrize("action", [Action.CREATE, Action.APPLY, Action.STATUS])
def test_a_lost_write_is_found(record: Record, action: Action) -> None:
    lost = in_the_midst_of(acknowledged(record, action)).outcome.revision
    forget(record, lambda change: change.revision == lost)
    assert Fault.LOST_WRITE in faults(record)


def test_a_lost_deletion_is_found(record: Record) -> None:
    lost = in_the_midst_of(acknowledged(record, Action.DELETE)).outcome.uid
    forget(record, lambda change: change.kind is Kind.DELETED and change.uid == lost)
    assert Fault.LOST_WRITE in faults(record)


def test_a_write_that_was_refused_and_made_nevertheless_is_found(record: Record) -> None:
    done = in_the_midst_of(acknowledged(record, Action.UPDATE))
    assert Fault.REFUSED_BUT_DONE in faults(exchange(record, done, Outcome(result=Result.CONFLICT)))


def test_a_write_on_another_version_than_it_named_is_found(record: Record) -> None:
    made = in_the_midst_of(acknowledged(record, Action.UPDATE))
    earlier = replace(made, intent=replace(made.intent, expected=(made.intent.expected or 0) - 1))
    operations = [earlier if each is made else each for each in record.operations]
    assert Fault.LOST_UPDATE in faults(replace(record, operations=operations))


def test_a_stale_read_is_found(record: Record) -> None:
    """The present is asked for, and what is shown was replaced by a write that had been answered."""
    writes = sorted(acknowledged(record, Action.UPDATE, Action.PATCH), key=lambda write: write.outcome.revision)
    earlier, later = in_the_midst_of(pairwise(write for write in writes if write.intent.key == "alder"))
    read = in_the_midst_of(
        read
        for read in acknowledged(record, Action.GET)
        if read.intent == Intent(action=Action.GET, key="alder") and read.invoked > later.answered
    )
    assert Fault.STALE_READ in faults(exchange(record, read, earlier.outcome))


def test_a_stale_list_is_found(record: Record) -> None:
    lists = [each for each in acknowledged(record, Action.LIST) if each.intent == Intent(action=Action.LIST)]
    early = in_the_midst_of(lists)
    write = next(
        write
        for write in acknowledged(record, Action.UPDATE, Action.PATCH)
        if write.outcome.revision > early.outcome.revision
    )
    late = next(each for each in lists if each.invoked > write.answered)
    assert Fault.STALE_READ in faults(exchange(record, late, early.outcome))


def test_an_object_that_a_list_of_a_selection_leaves_out_is_found(record: Record) -> None:
    listed = in_the_midst_of(
        each for each in acknowledged(record, Action.LIST) if each.intent.selection and each.outcome.items
    )
    items = dict(listed.outcome.items or {})
    items.popitem()
    assert Fault.STALE_READ in faults(exchange(record, listed, replace(listed.outcome, items=items)))


WATCHERS = ["watcher-0", "selective-watcher-0", "late-watcher", "watcher-0 of leases/red"]


@pytest.mark.parametrize("name", WATCHERS)
def test_a_gap_in_a_watch_is_found(record: Record, name: str) -> None:
    watch = watch_of(record, name)
    del watch.sights[some_change(watch)]
    assert faults(record) == {Fault.GAP}


@pytest.mark.parametrize("name", WATCHERS)
def test_a_change_that_a_watch_has_twice_is_found(record: Record, name: str) -> None:
    watch = watch_of(record, name)
    index = some_change(watch)
    watch.sights.insert(index + 1, watch.sights[index])
    assert faults(record) == {Fault.DUPLICATE}


@pytest.mark.parametrize("name", WATCHERS)
def test_changes_of_a_watch_in_the_wrong_order_are_found(record: Record, name: str) -> None:
    watch = watch_of(record, name)
    changes = [index for index, sight in enumerate(watch.sights) if sight.change]
    one, other = in_the_midst_of(pairwise(changes))
    watch.sights[one], watch.sights[other] = watch.sights[other], watch.sights[one]
    assert Fault.REORDERED in faults(record)


@pytest.mark.parametrize("name", WATCHERS)
def test_a_change_that_differs_in_one_watch_is_found(record: Record, name: str) -> None:
    watch = watch_of(record, name)
    index = some_change(watch)
    at, revision, change = watch.sights[index]
    assert change is not None
    watch.sights[index] = Sight(at, revision, change._replace(value=Value("another-client")))
    assert Fault.DISAGREEMENT in faults(record)
