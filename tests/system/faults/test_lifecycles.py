"""The check of namespaces that end: what the server may do by itself, and what must not be left."""

from __future__ import annotations

import pytest

from tests.system.faults.examples import operation, record, watch
from tests.system.faults.faults import Fault
from tests.system.faults.records import (
    ENDING,
    LEASES,
    NAMESPACES,
    Action,
    Change,
    Kind,
    Operation,
    Result,
    Value,
    Version,
    WatchRecord,
    is_in,
    namespace_of,
)
from tests.system.faults.verdict import check

NAMESPACE, LEASE = "namespaces/red", "leases/red/a"
ACTIVE, MARKED = Value("n1"), Value("n1", status=ENDING)

CREATE_NAMESPACE = operation(
    Action.CREATE, begin=1.0, key=NAMESPACE, token="n1", version=Version(11, "uid-n", Value("n1"))
)
CREATE_LEASE = operation(Action.CREATE, begin=2.0, key=LEASE, token="x1", version=Version(12, "uid-a", Value("x1")))
DELETE_NAMESPACE = operation(Action.DELETE, begin=3.0, key=NAMESPACE, uid="uid-n", version=Version(13, "uid-n", MARKED))
OPERATIONS = (CREATE_NAMESPACE, CREATE_LEASE, DELETE_NAMESPACE)

BEGIN = Change(11, Kind.ADDED, NAMESPACE, "uid-n", ACTIVE)
ADDITION = Change(12, Kind.ADDED, LEASE, "uid-a", Value("x1"))
MARK = Change(13, Kind.MODIFIED, NAMESPACE, "uid-n", MARKED)
DELETION = Change(14, Kind.DELETED, LEASE, "uid-a", Value("x1"))
END = Change(15, Kind.DELETED, NAMESPACE, "uid-n", MARKED)
CHANGES = (BEGIN, ADDITION, MARK, DELETION, END)


def watches(*changes: Change) -> list[WatchRecord]:
    """One watch of each resource."""
    found = []
    for collection in (LEASES, NAMESPACES):
        each = watch(*(change for change in changes if is_in(change.key, collection)), name=f"watcher of {collection}")
        each.collection = collection
        found.append(each)
    return found


def faults(*changes: Change, operations: tuple[Operation, ...] = OPERATIONS) -> set[Fault]:
    given = record(operations, watches=watches(*changes))
    return {violation.fault for violation in check(given, sole_writer=True).violations}


def test_a_namespace_ends_with_what_is_in_it() -> None:
    assert faults(*CHANGES) == set()


def test_what_the_server_made_is_counted() -> None:
    verdict = check(record(OPERATIONS, watches=watches(*CHANGES)), sole_writer=True)
    assert (verdict.by_server, verdict.removed_namespaces, verdict.unknown_but_done) == (2, 1, 0)


def test_an_object_that_outlives_its_namespace_is_found() -> None:
    assert faults(BEGIN, ADDITION, MARK, END._replace(revision=14)) == {Fault.SURVIVED}


def test_an_object_that_goes_after_its_namespace_is_found() -> None:
    late = (END._replace(revision=14), DELETION._replace(revision=15))
    assert faults(BEGIN, ADDITION, MARK, *late) == {Fault.SURVIVED}


def test_a_namespace_that_goes_unasked_is_found() -> None:
    assert Fault.PHANTOM in faults(*CHANGES, operations=OPERATIONS[:2])
    unmarked = END._replace(revision=14, value=ACTIVE)
    assert Fault.PHANTOM in faults(BEGIN, ADDITION, DELETION._replace(revision=13), unmarked)


def test_an_object_of_a_namespace_that_stays_is_not_for_the_server_to_delete() -> None:
    other = (
        operation(
            Action.CREATE, begin=2.6, key="leases/green/a", token="x2", version=Version(13, "uid-b", Value("x2"))
        ),
    )
    settled = Change(13, Kind.ADDED, "leases/green/a", "uid-b", Value("x2"))
    green = Change(10, Kind.ADDED, "namespaces/green", "uid-g", Value("g1"))
    initial = {green.key: Version(10, green.uid, green.value)}
    gone = Change(14, Kind.DELETED, settled.key, settled.uid, settled.value)
    given = record((*OPERATIONS[:2], *other), watches=watches(BEGIN, ADDITION, settled, gone), initial=initial)
    assert {violation.fault for violation in check(given, sole_writer=True).violations} == {Fault.PHANTOM}


def test_an_object_that_is_let_in_after_the_deletion_was_answered_is_found() -> None:
    created = operation(Action.CREATE, begin=4.0, key=LEASE, token="x1", version=Version(14, "uid-a", Value("x1")))
    mark = operation(Action.DELETE, begin=3.0, key=NAMESPACE, uid="uid-n", version=Version(12, "uid-n", MARKED))
    changes = (
        BEGIN,
        MARK._replace(revision=12),
        Change(13, Kind.MODIFIED, NAMESPACE, "uid-n", MARKED),
        ADDITION._replace(revision=14),
        DELETION._replace(revision=15),
        END._replace(revision=16),
    )
    assert faults(*changes, operations=(CREATE_NAMESPACE, mark, created)) == {Fault.LET_IN}


@pytest.mark.parametrize("result", [Result.HOMELESS, Result.SHUT_OUT])
def test_a_refusal_for_a_namespace_that_is_there_is_found(result: Result) -> None:
    refused = operation(Action.CREATE, begin=1.6, end=1.7, key="leases/red/b", token="x9", result=result)
    found = faults(BEGIN, ADDITION, operations=(*OPERATIONS[:2], refused))
    assert found == {Fault.WRONG_REFUSAL}


def test_a_change_of_another_namespace_in_a_watch_is_found() -> None:
    narrow = watch(ADDITION, DELETION, name="narrow")
    narrow.collection = "leases/green"
    given = record(OPERATIONS, watches=[*watches(*CHANGES), narrow])
    assert {violation.fault for violation in check(given, sole_writer=True).violations} == {Fault.DISAGREEMENT}


def test_an_object_of_another_namespace_in_a_list_is_found() -> None:
    shown = {LEASE: Version(12, "uid-a", Value("x1"))}
    listed = operation(Action.LIST, begin=2.6, end=2.7, key="", revision=12, items=shown)
    assert Fault.STALE_READ in faults(*CHANGES, operations=(*OPERATIONS, listed))


def test_keys_say_where_they_are() -> None:
    assert [is_in(LEASE, each) for each in ("", LEASES, "leases/red", "leases/re", NAMESPACES)] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert (namespace_of(LEASE), namespace_of(NAMESPACE), namespace_of("a")) == (NAMESPACE, "", "")
