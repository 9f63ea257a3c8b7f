"""The check finds every violation in the answers to writes and reads, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.system.faults.examples import (
    ADDITION,
    CREATE_IT,
    CREATED,
    DELETE_IT,
    DELETION,
    OPERATIONS,
    PATCH,
    PATCH_IT,
    PATCHED,
    START,
    UPDATE,
    UPDATE_IT,
    UPDATED,
    listing,
    operation,
    read,
    record,
)
from tests.system.faults.faults import Fault
from tests.system.faults.records import (
    Action,
    Change,
    Kind,
    Operation,
    Outcome,
    Record,
    Result,
    Selection,
    Value,
    Version,
)
from tests.system.faults.verdict import check

TOKENS = ("x1", "x2", "x3", "x4", "x5")


def faults(given: Record, *, sole_writer: bool = False) -> set[Fault]:
    return {violation.fault for violation in check(given, sole_writer=sole_writer).violations}


def unknown(action: Action, *, begin: float, token: str = "", expected: int | None = None) -> Operation:
    return operation(action, begin=begin, token=token, expected=expected, result=Result.UNKNOWN)


def written(
    values: Sequence[Value],
    kinds: Sequence[Action] = (Action.APPLY, Action.PATCH, Action.STATUS, Action.APPLY, Action.UPDATE),
) -> Record:
    """One object on which writes of these kinds made these values, one after the other."""
    changes, operations = [], []
    for number, (value, action) in enumerate(zip(values, kinds, strict=True), start=1):
        kind = Kind.ADDED if number == 1 else Kind.MODIFIED
        changes.append(Change(START + number, kind, "a", "uid-1", value))
        version = Version(START + number, "uid-1", value)
        token = next(token for token in reversed(TOKENS) if token in value)
        operations.append(operation(action, begin=float(number), token=token, version=version))
    return record(operations, changes=changes)


# What is in order


def test_a_history_in_order_has_no_fault() -> None:
    reads = [read(CREATED, begin=1.6), read(UPDATED, begin=2.6), read(PATCHED, begin=3.6), read(None, begin=4.6)]
    assert faults(record([*OPERATIONS, *reads]), sole_writer=True) == set()


def test_the_figures_count_what_was_checked() -> None:
    lost, done = unknown(Action.CREATE, begin=5.0, token="x9"), unknown(Action.CREATE, begin=1.0, token="x1")
    refused = operation(Action.CREATE, begin=2.6, token="x8", result=Result.EXISTS)
    verdict = check(record([done, *OPERATIONS[1:], lost, refused, read(None, begin=0.1)]), sole_writer=True)
    assert verdict.violations == []
    assert (verdict.operations, verdict.reads, verdict.acknowledged, verdict.refused) == (7, 1, 3, 1)
    assert (verdict.unknown, verdict.unknown_but_done) == (2, 1)
    assert (verdict.changes, verdict.events, verdict.connections) == (4, 8, 2)


def test_a_write_of_unknown_outcome_may_have_happened_or_not() -> None:
    first = unknown(Action.CREATE, begin=1.0, token="x1")
    assert faults(record([first, *OPERATIONS[1:]])) == set()
    assert faults(record([*OPERATIONS, unknown(Action.CREATE, begin=1.0, token="x9")])) == set()


def test_a_write_of_unknown_outcome_may_happen_long_after() -> None:
    late = [Change(15, Kind.ADDED, "a", "uid-2", Value("x9"))]
    changes = (ADDITION, UPDATE, PATCH, DELETION, *late)
    assert faults(record([*OPERATIONS, unknown(Action.CREATE, begin=0.5, token="x9")], changes=changes)) == set()


def test_a_deletion_of_unknown_outcome_explains_a_deletion() -> None:
    assert faults(record([*OPERATIONS[:3], unknown(Action.DELETE, begin=4.0)])) == set()
    assert faults(record([*OPERATIONS[:3], unknown(Action.DELETE, begin=4.0, expected=13)])) == set()


def test_a_read_during_a_write_may_show_either_state() -> None:
    assert faults(record([*OPERATIONS, read(CREATED, begin=2.1, end=2.2), read(UPDATED, begin=2.3, end=2.4)])) == set()


def test_a_read_that_may_be_old_may_be_old() -> None:
    assert faults(record([*OPERATIONS, read(CREATED, begin=9.0, not_older_than=0)])) == set()
    assert faults(record([*OPERATIONS, read(CREATED, begin=9.0, not_older_than=11)])) == set()


def test_what_was_there_at_the_start_needs_no_author() -> None:
    there = {"a": CREATED._replace(revision=9), "b": Version(8, "uid-b", Value("old"))}
    update = replace(UPDATE_IT, intent=replace(UPDATE_IT.intent, expected=9))
    shown = listing({"b": there["b"]}, revision=14, begin=5.0)
    given = record([update, PATCH_IT, DELETE_IT, shown], changes=(UPDATE, PATCH, DELETION), initial=there)
    assert faults(given) == set()


def test_each_kind_of_write_changes_its_own_part() -> None:
    values = [
        Value("", applied="x1"),
        Value("", patch="x2", applied="x1"),
        Value("", patch="x2", applied="x1", status="x3"),
        Value("", patch="x2", applied="x4", status="x3"),
        Value("x5", status="x3"),
    ]
    assert faults(written(values)) == set()
    for wrong in (Value("x5"), Value("x5", patch="x2", status="x3"), Value("x5", applied="x4", status="x3")):
        assert faults(written([*values[:4], wrong])) == {Fault.PHANTOM, Fault.LOST_WRITE}


def test_an_apply_that_takes_a_label_of_others_away_is_a_phantom() -> None:
    values = [Value("", applied="x1"), Value("", patch="x2", applied="x1"), Value("", applied="x4")]
    kinds = (Action.APPLY, Action.PATCH, Action.APPLY)
    assert Fault.PHANTOM in faults(written(values, kinds))


# Writes


def test_an_acknowledged_write_that_is_nowhere_is_lost() -> None:
    assert faults(record(changes=(ADDITION, UPDATE, PATCH))) == {Fault.LOST_WRITE}
    lost = operation(Action.CREATE, begin=5.0, token="x5", version=Version(15, "uid-2", Value("x5")))
    assert faults(record([*OPERATIONS, lost])) == {Fault.LOST_WRITE}
    assert check(record([*OPERATIONS, lost]), sole_writer=True).lost == 1


def test_a_second_acknowledged_deletion_of_one_object_is_a_lost_write() -> None:
    assert faults(record([*OPERATIONS, operation(Action.DELETE, begin=4.1, uid="uid-1")])) == {Fault.LOST_WRITE}


def test_a_change_without_a_write_is_a_phantom() -> None:
    assert faults(record(OPERATIONS[1:])) == {Fault.PHANTOM}
    assert faults(record(OPERATIONS[:3])) == {Fault.PHANTOM}


def test_a_deletion_before_its_request_is_a_phantom() -> None:
    seen_gone = read(None, begin=5.0)
    assert faults(record([*OPERATIONS[:3], seen_gone, unknown(Action.DELETE, begin=6.0)])) == {Fault.PHANTOM}


def test_one_deletion_of_unknown_outcome_does_not_explain_two() -> None:
    again = Change(15, Kind.ADDED, "a", "uid-2", Value("x4"))
    gone = Change(16, Kind.DELETED, "a", "uid-2", Value("x4"))
    recreate = operation(Action.CREATE, begin=5.0, token="x4", version=Version(15, "uid-2", Value("x4")))
    changes = (ADDITION, UPDATE, PATCH, DELETION, again, gone)
    one = [*OPERATIONS[:3], recreate, unknown(Action.DELETE, begin=4.0)]
    assert faults(record(one, changes=changes)) == {Fault.PHANTOM}
    assert faults(record([*one, unknown(Action.DELETE, begin=6.0)], changes=changes)) == set()


def test_of_several_deletions_of_unknown_outcome_any_may_have_been_the_one() -> None:
    early, late = unknown(Action.DELETE, begin=4.0), unknown(Action.DELETE, begin=6.0, expected=13)
    seen_gone = read(None, begin=5.0)
    assert faults(record([*OPERATIONS[:3], seen_gone, late, early])) == set()
    assert faults(record([*OPERATIONS[:3], seen_gone, late])) == {Fault.PHANTOM}


def test_a_deletion_of_unknown_outcome_is_of_the_object_that_it_names() -> None:
    for uid, found in {"uid-1": set(), "uid-9": {Fault.PHANTOM}}.items():
        delete = unknown(Action.DELETE, begin=4.0)
        delete = replace(delete, intent=replace(delete.intent, uid=uid))
        assert faults(record([*OPERATIONS[:3], delete])) == found


def test_a_patch_that_changed_more_than_it_said_is_a_phantom() -> None:
    wrong = PATCH._replace(value=Value("x1", "x3"))
    assert Fault.PHANTOM in faults(record(changes=(ADDITION, UPDATE, wrong, DELETION)))


def test_a_refused_write_must_not_take_effect() -> None:
    refused = replace(UPDATE_IT, outcome=Outcome(result=Result.REFUSED))
    assert faults(record([CREATE_IT, refused, PATCH_IT, DELETE_IT])) == {Fault.REFUSED_BUT_DONE}


def test_a_write_takes_effect_once() -> None:
    for again in (UPDATE, PATCH):
        changes = (ADDITION, UPDATE, PATCH, again._replace(revision=14))
        assert faults(record(OPERATIONS[:3], changes=changes)) == {Fault.APPLIED_TWICE}


def test_a_write_is_answered_with_what_it_made() -> None:
    wrong = operation(Action.CREATE, begin=1.0, token="x1", version=CREATED._replace(revision=10))
    assert faults(record([wrong, *OPERATIONS[1:]])) == {Fault.WRONG_ANSWER}


def test_a_conditional_write_is_made_on_the_version_that_it_names() -> None:
    late = PATCH._replace(revision=12)
    over = UPDATE._replace(revision=13)
    patch = operation(Action.PATCH, begin=2.0, token="x3", version=Version(12, "uid-1", Value("x1", "x3")))
    update = operation(Action.UPDATE, begin=3.0, token="x2", expected=11, version=UPDATED._replace(revision=13))
    changes = (ADDITION, late._replace(value=Value("x1", "x3")), over)
    assert faults(record([CREATE_IT, patch, update], changes=changes)) == {Fault.LOST_UPDATE}


def test_a_conditional_deletion_is_of_the_version_that_it_names() -> None:
    wrong = operation(Action.DELETE, begin=4.0, expected=12, uid="uid-1")
    assert faults(record([*OPERATIONS[:3], wrong])) == {Fault.LOST_UPDATE}


def test_a_deletion_is_of_the_object_that_it_names() -> None:
    wrong = replace(DELETE_IT, intent=replace(DELETE_IT.intent, uid="uid-9"))
    assert faults(record([*OPERATIONS[:3], wrong])) == {Fault.LOST_UPDATE}
    refused = replace(wrong, outcome=Outcome(result=Result.CONFLICT))
    assert faults(record([*OPERATIONS, replace(refused, invoked=3.6, answered=3.7)])) == set()
    right = replace(refused, intent=replace(refused.intent, uid="uid-1"), invoked=3.6, answered=3.7)
    assert faults(record([*OPERATIONS, right])) == {Fault.WRONG_REFUSAL}


def test_a_later_write_has_a_higher_revision() -> None:
    other = Change(15, Kind.ADDED, "b", "uid-b", Value("x7"))
    early = operation(Action.CREATE, key="b", begin=0.0, token="x7", version=Version(15, "uid-b", Value("x7")))
    assert faults(record([*OPERATIONS, early], changes=(ADDITION, UPDATE, PATCH, DELETION, other))) == {
        Fault.REVISION_WENT_BACK
    }


def test_nothing_is_seen_before_it_was_written() -> None:
    assert faults(record([*OPERATIONS, read(UPDATED, begin=1.6, end=1.7)])) == {Fault.PHANTOM}


# Lives of objects


def test_a_deleted_object_does_not_come_back() -> None:
    back = Change(15, Kind.MODIFIED, "a", "uid-1", Value("x2", "x5"))
    patch = operation(Action.PATCH, begin=5.0, token="x5", version=Version(15, "uid-1", Value("x2", "x5")))
    assert Fault.RESURRECTED in faults(record([*OPERATIONS, patch], changes=(ADDITION, UPDATE, PATCH, DELETION, back)))


def test_a_uid_is_never_used_again() -> None:
    again = Change(15, Kind.ADDED, "a", "uid-1", Value("x5"))
    create = operation(Action.CREATE, begin=5.0, token="x5", version=Version(15, "uid-1", Value("x5")))
    assert faults(record([*OPERATIONS, create], changes=(ADDITION, UPDATE, PATCH, DELETION, again))) == {
        Fault.RESURRECTED
    }


def test_a_deleted_object_that_is_read_is_a_stale_read() -> None:
    assert faults(record([*OPERATIONS, read(PATCHED, begin=5.0)])) == {Fault.STALE_READ}


# Reads and refusals


def test_a_read_must_not_show_what_was_replaced_before_it_began() -> None:
    assert faults(record([*OPERATIONS, read(CREATED, begin=2.6, end=2.7)])) == {Fault.STALE_READ}


def test_a_read_must_not_go_behind_another_read() -> None:
    reads = [read(UPDATED, begin=2.1, end=2.2), read(CREATED, begin=2.3, end=2.4)]
    assert faults(record([*OPERATIONS, *reads])) == {Fault.STALE_READ}


def test_a_read_must_not_go_behind_what_a_read_that_may_be_old_has_shown() -> None:
    reads = [read(UPDATED, begin=2.1, end=2.2, not_older_than=0), read(CREATED, begin=2.3, end=2.4)]
    assert faults(record([*OPERATIONS, *reads])) == {Fault.STALE_READ}


def test_a_read_must_not_be_older_than_it_asked_for() -> None:
    assert faults(record([*OPERATIONS, read(CREATED, begin=9.0, not_older_than=12)])) == {Fault.STALE_READ}


def test_an_object_that_exists_must_be_found() -> None:
    assert faults(record([*OPERATIONS, read(None, begin=2.6, end=2.7)])) == {Fault.STALE_READ}


def test_a_read_of_what_was_never_written_is_a_phantom() -> None:
    assert faults(record([*OPERATIONS, read(Version(12, "uid-1", Value("x7")), begin=2.1)])) == {Fault.PHANTOM}


def test_a_list_is_of_one_revision() -> None:
    assert faults(record([*OPERATIONS, listing({"a": UPDATED}, revision=12, begin=2.1)])) == set()
    assert faults(record([*OPERATIONS, listing({"a": CREATED}, revision=12, begin=2.1)])) == {Fault.STALE_READ}
    assert faults(record([*OPERATIONS, listing({}, revision=12, begin=2.1)])) == {Fault.STALE_READ}


def test_a_list_of_a_selection_has_all_of_it_and_nothing_else() -> None:
    def selected(items: Mapping[str, Version], *, revision: int, begin: float) -> Operation:
        listed = listing(items, revision=revision, begin=begin)
        return replace(listed, intent=replace(listed.intent, selection=Selection.PATCHED))

    right = [selected({}, revision=12, begin=2.1), selected({"a": PATCHED}, revision=13, begin=3.1)]
    assert faults(record([*OPERATIONS, *right])) == set()
    assert faults(record([*OPERATIONS, selected({"a": UPDATED}, revision=12, begin=2.1)])) == {Fault.STALE_READ}
    assert faults(record([*OPERATIONS, selected({}, revision=13, begin=3.1)])) == {Fault.STALE_READ}


def test_a_list_must_not_be_of_an_old_revision() -> None:
    assert faults(record([*OPERATIONS, listing({"a": CREATED}, revision=11, begin=2.6)])) == {Fault.STALE_READ}


def test_a_refusal_must_have_held_at_some_moment() -> None:
    absent = operation(Action.PATCH, begin=2.6, end=2.7, token="x8", result=Result.ABSENT)
    exists = operation(Action.CREATE, begin=4.6, token="x8", result=Result.EXISTS)
    conflict = operation(Action.UPDATE, begin=2.6, end=2.7, token="x8", expected=12, result=Result.CONFLICT)
    for refused in (absent, exists, conflict):
        assert faults(record([*OPERATIONS, refused])) == {Fault.WRONG_REFUSAL}


def test_a_refusal_may_rest_on_a_write_that_was_under_way() -> None:
    absent = operation(Action.PATCH, begin=0.9, end=1.1, token="x8", result=Result.ABSENT)
    exists = operation(Action.CREATE, begin=4.1, end=4.2, token="x8", result=Result.EXISTS)
    conflict = operation(Action.UPDATE, begin=2.1, end=2.2, token="x8", expected=11, result=Result.CONFLICT)
    assert faults(record([*OPERATIONS, absent, exists, conflict])) == set()


def test_an_answer_that_makes_no_sense_is_reported() -> None:
    odd = replace(CREATE_IT, outcome=Outcome(result=Result.UNEXPECTED, text="418 teapot"))
    (violation,) = check(record([odd], changes=()), sole_writer=True).violations
    assert violation.fault is Fault.TROUBLE
    assert "418 teapot" in str(violation)


def test_a_server_must_not_answer_that_it_does_not_know_what_happened() -> None:
    for status, found in {500: {Fault.TROUBLE}, 503: set()}.items():
        failed = operation(Action.CREATE, begin=1.0, token="x9", result=Result.UNKNOWN)
        failed = replace(failed, outcome=replace(failed.outcome, status=status, text="text"))
        assert faults(record([*OPERATIONS, failed])) == found


def test_a_report_shows_the_first_violations_and_counts_the_rest() -> None:
    report = check(record(()), sole_writer=True).report(most=1)
    assert "4 violations\n  something appeared that was never written: " in report
    assert report.endswith("... and 3 more")
