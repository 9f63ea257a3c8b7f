"""The check finds every violation in the events of watches, and nothing else."""

from __future__ import annotations

from tests.system.faults.examples import (
    ADDITION,
    CHANGES,
    DELETION,
    OPERATIONS,
    PATCH,
    UPDATE,
    operation,
    read,
    record,
    watch,
)
from tests.system.faults.faults import Fault
from tests.system.faults.records import Action, Change, Kind, Selection, Value, Version, WatchRecord
from tests.system.faults.verdict import check


def faults(*watches: WatchRecord, sole_writer: bool = False) -> list[Fault]:
    verdict = check(record(watches=[watch(*CHANGES), *watches]), sole_writer=sole_writer)
    return [violation.fault for violation in verdict.violations]


def received(*events: Change | int) -> WatchRecord:
    return watch(*events, name="watcher-1")


def test_watches_that_tell_the_same_have_no_fault() -> None:
    assert faults(received(*CHANGES), sole_writer=True) == []


def test_a_missing_change_is_a_gap() -> None:
    assert faults(received(ADDITION, PATCH, DELETION)) == [Fault.GAP]


def test_a_watch_that_ends_too_early_has_a_gap() -> None:
    assert faults(received(ADDITION, UPDATE)) == [Fault.GAP, Fault.GAP]


def test_a_watch_that_began_later_need_not_tell_what_was_before() -> None:
    late = received(PATCH, DELETION)
    late.start = 12
    assert faults(late) == []


def test_a_change_that_is_told_again_is_a_duplicate() -> None:
    assert faults(received(ADDITION, UPDATE, UPDATE, PATCH, DELETION)) == [Fault.DUPLICATE]
    assert faults(received(*CHANGES, ADDITION)) == [Fault.DUPLICATE]


def test_a_change_from_before_the_start_is_out_of_order() -> None:
    late = received(*CHANGES)
    late.start = 11
    assert faults(late) == [Fault.REORDERED]


def test_changes_out_of_order_are_found() -> None:
    assert faults(received(ADDITION, PATCH, UPDATE, DELETION)) == [Fault.REORDERED]


def test_two_watches_must_tell_the_same() -> None:
    other = UPDATE._replace(value=Value("x1", "x9"))
    assert faults(received(ADDITION, other, PATCH, DELETION)) == [Fault.DISAGREEMENT]


def test_a_bookmark_repeats_or_raises_the_revision() -> None:
    assert faults(received(10, ADDITION, 11, UPDATE, PATCH, DELETION, 14, 14, 20)) == []


def test_a_change_that_a_bookmark_was_past_is_out_of_order() -> None:
    assert faults(received(ADDITION, 12, UPDATE, PATCH, DELETION)) == [Fault.REORDERED]


ENTERED = PATCH._replace(kind=Kind.ADDED)
AGAIN = Change(14, Kind.MODIFIED, "a", "uid-1", Value("x4"))
LEFT = Change(14, Kind.DELETED, "a", "uid-1", PATCH.value)


def selective(*events: Change | int) -> WatchRecord:
    """Received by a watch of what was patched."""
    watched = watch(*events, name="selective-watcher")
    watched.selection = Selection.PATCHED
    return watched


def test_a_watch_of_a_selection_tells_what_enters_and_leaves_it() -> None:
    assert faults(selective(ENTERED, DELETION)) == []
    update = operation(Action.UPDATE, begin=4.0, token="x4", expected=13, version=Version(14, "uid-1", Value("x4")))
    watches = [watch(ADDITION, UPDATE, PATCH, AGAIN), selective(ENTERED, LEFT)]
    given = record([*OPERATIONS[:3], update], watches=watches)
    assert check(given, sole_writer=True).violations == []


def test_a_watch_of_a_selection_that_tells_otherwise_is_found() -> None:
    assert faults(selective(DELETION)) == [Fault.GAP]
    assert faults(selective(ENTERED, ENTERED, DELETION)) == [Fault.DUPLICATE]
    assert faults(selective(PATCH, DELETION)) == [Fault.DISAGREEMENT]
    assert faults(selective(ADDITION, ENTERED, DELETION)) == [Fault.DISAGREEMENT]


def test_a_bookmark_must_not_go_back() -> None:
    assert faults(received(*CHANGES, 13)) == [Fault.REORDERED]


def test_a_watch_that_resumes_in_time_is_not_refused() -> None:
    refused = received(*CHANGES)
    refused.troubles.append("410 too old resource version")
    assert faults(refused) == [Fault.TROUBLE]


def test_what_no_watch_told_shows_in_the_numbers_of_the_revisions() -> None:
    without = [change for change in CHANGES if change is not UPDATE]
    given = record([], watches=[watch(*without)])
    assert Fault.GAP not in {violation.fault for violation in check(given, sole_writer=False).violations}
    assert Fault.GAP in {violation.fault for violation in check(given, sole_writer=True).violations}


def test_a_read_must_not_go_behind_what_a_watch_has_received() -> None:
    quick = watch(*CHANGES, begin=1.1)  # each change while its write is still under way
    given = record([*OPERATIONS, read(None, begin=1.2, end=1.3)], watches=[quick])
    assert [violation.fault for violation in check(given, sole_writer=True).violations] == [Fault.STALE_READ]


def test_a_change_must_not_be_told_before_it_was_asked_for() -> None:
    given = record(watches=[watch(*CHANGES, begin=0.9)])
    assert {violation.fault for violation in check(given, sole_writer=True).violations} == {Fault.REVISION_WENT_BACK}
