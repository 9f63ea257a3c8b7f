from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.apimachinery.fieldmanager.errors import ConflictsError, InvalidConfigurationError
from clusterregistry.apimachinery.fieldmanager.field_manager import FieldManager
from tests.apimachinery.fieldmanager.schemas import (
    API_VERSION,
    Clock,
    entries,
    entry_of,
    field_manager,
    fields_of,
    managers,
    thing,
    without_managed_fields,
)

MIDNIGHT = "2024-01-01T00:00:00Z"
LATER = "2024-01-01T00:01:00Z"
TEXT: dict[str, Any] = {"f:spec": {"f:text": {}}}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def main(clock: Clock) -> FieldManager:
    return field_manager(clock)


@pytest.fixture
def status(clock: Clock) -> FieldManager:
    return field_manager(clock, subresource="status")


def updated(
    owner: FieldManager, live: dict[str, Any] | None, obj: dict[str, Any], manager: str = "u"
) -> dict[str, Any]:
    result, before = copy.deepcopy(obj), copy.deepcopy(live)
    owner.record_update(live, result, manager=manager)
    assert live == before
    return result


def applied(
    owner: FieldManager,
    live: dict[str, Any] | None,
    configuration: dict[str, Any],
    manager: str = "a",
    *,
    force: bool = False,
) -> dict[str, Any]:
    before = copy.deepcopy((live, configuration))
    try:
        return owner.apply(live, configuration, manager=manager, force=force)
    finally:
        assert (live, configuration) == before


# Updates


def test_who_creates_an_object_owns_all_that_it_sets_but_what_everybody_has(main: FieldManager) -> None:
    created = updated(
        main,
        None,
        thing(
            {"text": "x", "set": ["a"]}, labels={"l": "1"}, uid="u", generation=1, namespace="n", resourceVersion="1"
        ),
    )
    assert entries(created) == [
        {
            "manager": "u",
            "operation": "Update",
            "apiVersion": API_VERSION,
            "time": MIDNIGHT,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
                "f:spec": {".": {}, "f:text": {}, "f:set": {".": {}, 'v:"a"': {}}},
            },
        }
    ]


def test_a_created_object_that_sets_nothing_has_no_entries_and_is_not_tracked(main: FieldManager) -> None:
    created = updated(main, None, thing())
    assert "managedFields" not in created["metadata"]
    assert "managedFields" not in updated(main, created, thing({"text": "x"}))["metadata"]


def test_no_object_is_created_with_the_marks_of_deletion(main: FieldManager) -> None:
    created = updated(main, None, thing(deletionTimestamp=MIDNIGHT, deletionGracePeriodSeconds=0))
    assert created["metadata"] == {"name": "thing"}


def test_a_nameless_manager_is_unknown(main: FieldManager) -> None:
    assert managers(updated(main, None, thing({"text": "x"}), "")) == [("unknown", "Update")]
    assert managers(applied(main, None, thing({"text": "x"}), "")) == [("unknown", "Apply")]


def test_who_changes_a_field_owns_it_from_then_on(main: FieldManager, clock: Clock) -> None:
    created = updated(main, None, thing({"text": "x", "number": 1}), "first")
    clock.advance()
    changed = updated(main, created, thing({"text": "y", "number": 1}), "second")
    assert fields_of(changed, "first", "Update") == {"f:spec": {".": {}, "f:number": {}}}
    assert fields_of(changed, "second", "Update") == TEXT
    assert [each["time"] for each in entries(changed)] == [MIDNIGHT, LATER]


def test_who_removes_a_field_owns_nothing_by_it(main: FieldManager) -> None:
    created = updated(main, None, thing({"text": "x", "number": 1}), "first")
    changed = updated(main, created, thing({"number": 1}), "second")
    assert managers(changed) == [("first", "Update")]
    assert fields_of(changed, "first", "Update") == {"f:spec": {".": {}, "f:number": {}}}


def test_a_manager_that_owns_nothing_any_more_has_no_entry(main: FieldManager) -> None:
    created = updated(main, None, thing(labels={"l": "1"}), "first")
    assert managers(updated(main, created, thing({"text": "x"}), "second")) == [("second", "Update")]


def test_an_update_that_changes_nothing_leaves_the_entries_as_they_are(main: FieldManager, clock: Clock) -> None:
    created = updated(main, None, thing({"text": "x"}), "first")
    clock.advance()
    assert updated(main, created, created, "second") == created
    assert updated(main, created, without_managed_fields(created), "second") == created
    assert updated(main, created, {**created, "metadata": {"name": "thing", "uid": "new"}}, "second") == {
        **created,
        "metadata": {**created["metadata"], "uid": "new"},
    }


def test_a_managers_updates_add_up(main: FieldManager, clock: Clock) -> None:
    created = updated(main, None, thing({"text": "x"}))
    clock.advance()
    changed = updated(main, created, thing({"text": "x", "number": 1}))
    assert entry_of(changed, "u", "Update")["fieldsV1"] == {"f:spec": {".": {}, "f:text": {}, "f:number": {}}}
    assert entry_of(changed, "u", "Update")["time"] == LATER


def test_the_eleventh_updater_ages_the_oldest(main: FieldManager, clock: Clock) -> None:
    live = updated(main, None, thing({"map": {"0": "x"}}), "m0")
    for number in range(1, 11):
        clock.advance()
        keys = {str(each): "x" for each in range(number + 1)}
        live = updated(main, live, thing({"map": keys}), f"m{number}")
    assert managers(live)[0] == ("ancient-changes", "Update")
    assert len(managers(live)) == 10
    assert fields_of(live, "ancient-changes", "Update")["f:spec"]["f:map"] == {".": {}, "f:0": {}, "f:1": {}}


# What clients send in managedFields


def sent_entry(**rest: Any) -> dict[str, Any]:
    return {
        "manager": "sent",
        "operation": "Update",
        "apiVersion": API_VERSION,
        "fieldsType": "FieldsV1",
        "fieldsV1": TEXT,
        **rest,
    }


def test_an_update_may_replace_the_entries(main: FieldManager) -> None:
    live = updated(main, None, thing({"text": "x"}))
    changed = updated(
        main, live, thing({"text": "x"}, managedFields=[sent_entry(fieldsV1={"f:spec": {"f:text": {".": {}}}})])
    )
    assert entries(changed) == [sent_entry()]


def test_replaced_entries_lose_what_the_same_update_changes(main: FieldManager) -> None:
    live = updated(main, None, thing({"text": "x"}))
    changed = updated(main, live, thing({"text": "y"}, managedFields=[sent_entry()]), "other")
    assert managers(changed) == [("other", "Update")]


def test_who_creates_an_object_with_entries_owns_no_name_by_them(main: FieldManager) -> None:
    """Nobody owns the name, though the writer's own entry says so and keeps the rest."""
    fields: dict[str, Any] = {"f:metadata": {".": {}, "f:name": {}, "f:labels": {"f:l": {}}}}
    sent = [{"manager": "u", "operation": "Update", "apiVersion": API_VERSION, "fieldsType": "FieldsV1"}]
    created = updated(main, None, thing({"text": "x"}, managedFields=[{**sent[0], "fieldsV1": fields}]))
    assert fields_of(created, "u", "Update") == {
        "f:metadata": {".": {}, "f:labels": {"f:l": {}}},
        "f:spec": {".": {}, "f:text": {}},
    }


def test_one_empty_entry_resets_and_the_object_is_not_tracked(main: FieldManager) -> None:
    live = updated(main, None, thing({"text": "x"}))
    reset = updated(main, live, thing({"text": "y"}, managedFields=[{}]))
    assert "managedFields" not in reset["metadata"]
    assert "managedFields" not in updated(main, reset, thing({"text": "z"}))["metadata"]


@pytest.mark.parametrize(
    "sent",
    [
        [],
        [sent_entry(operation="x")],
        [sent_entry(fieldsV1={"spec": {}})],
        [sent_entry(), {}],
        [sent_entry(apiVersion="")],
    ],
)
def test_entries_that_say_nothing_or_are_malformed_are_passed_over(main: FieldManager, sent: list[Any]) -> None:
    live = updated(main, None, thing({"text": "x"}))
    assert updated(main, live, thing({"text": "x"}, managedFields=sent)) == live


def test_sent_entries_without_fields_leave_the_object_untracked(main: FieldManager) -> None:
    live = updated(main, None, thing({"text": "x"}))
    changed = updated(main, live, thing({"text": "x"}, managedFields=[sent_entry(fieldsV1={})]))
    assert "managedFields" not in changed["metadata"]


def test_through_a_subresource_entries_cannot_be_replaced(main: FieldManager, status: FieldManager) -> None:
    live = updated(main, None, thing({"text": "x"}))
    sent = thing({"text": "x"}, managedFields=[{}])
    assert updated(status, live, sent) == live


def test_entries_of_versions_that_are_gone_are_dropped(main: FieldManager) -> None:
    live = thing({"text": "x"}, managedFields=[sent_entry(apiVersion="example.com/v0"), sent_entry(manager="kept")])
    assert managers(updated(main, live, thing({"text": "x", "number": 1}))) == [("kept", "Update"), ("u", "Update")]
    assert managers(applied(main, live, thing({"number": 1}))) == [("a", "Apply"), ("kept", "Update")]


def test_an_apply_to_entries_of_which_none_is_left_counts_what_exists_as_before_it(main: FieldManager) -> None:
    live = thing({"text": "x"}, managedFields=[sent_entry(apiVersion="example.com/v0")])
    assert managers(applied(main, live, thing({"number": 1}))) == [("a", "Apply"), ("before-first-apply", "Update")]


def test_entries_are_made_to_fit_the_schema(main: FieldManager) -> None:
    old = sent_entry(
        manager="old", fieldsV1={"f:spec": {"f:atomicStruct": {".": {}, "f:a": {}}, "f:list": {"i:0": {}}}}
    )
    live = thing({"atomicStruct": {"a": "x"}, "list": ["a"]}, managedFields=[old])
    changed = updated(main, live, thing({"atomicStruct": {"a": "x"}, "list": ["a"], "text": "x"}))
    assert fields_of(changed, "old", "Update") == {"f:spec": {"f:atomicStruct": {}, "f:list": {}}}


# Applies


def test_an_apply_creates_the_object_and_owns_what_it_says(main: FieldManager) -> None:
    configuration = thing({"text": "x", "struct": {"a": "y"}}, labels={"l": "1"})
    created = applied(main, None, configuration)
    assert without_managed_fields(created) == configuration
    assert entries(created) == [
        {
            "manager": "a",
            "operation": "Apply",
            "apiVersion": API_VERSION,
            "time": MIDNIGHT,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:l": {}}}, "f:spec": {"f:text": {}, "f:struct": {"f:a": {}}}},
        }
    ]


@pytest.mark.parametrize("metadata", [{}, {"metadata": None}, {"metadata": {}}])
def test_an_apply_may_leave_out_the_metadata(main: FieldManager, metadata: dict[str, Any]) -> None:
    live = applied(main, None, thing({"text": "x"}))
    configuration = {"apiVersion": API_VERSION, "kind": "Thing", "spec": {"number": 1}, **metadata}
    changed = applied(main, live, configuration, "b")
    assert without_managed_fields(changed) == thing({"text": "x", "number": 1})
    assert "metadata" in applied(main, None, configuration)


def test_the_same_apply_twice_changes_nothing(main: FieldManager, clock: Clock) -> None:
    configuration = thing({"text": "x", "items": [{"name": "a"}], "set": ["b"]}, labels={"l": "1"})
    created = applied(main, None, configuration)
    clock.advance()
    assert applied(main, created, configuration) == created


def test_an_apply_that_changes_a_field_of_its_own_takes_the_time(main: FieldManager, clock: Clock) -> None:
    created = applied(main, None, thing({"text": "x"}))
    clock.advance()
    changed = applied(main, created, thing({"text": "y"}))
    assert changed["spec"] == {"text": "y"}
    assert entry_of(changed, "a")["time"] == LATER


def test_what_a_manager_no_longer_applies_goes(main: FieldManager) -> None:
    created = applied(main, None, thing({"text": "x", "number": 1, "map": {"k": "v"}, "items": [{"name": "a"}]}))
    changed = applied(main, created, thing({"number": 1}))
    assert without_managed_fields(changed) == thing({"number": 1})
    assert fields_of(changed, "a") == {"f:spec": {"f:number": {}}}


def test_who_applies_nothing_any_more_has_no_entry(main: FieldManager) -> None:
    created = applied(main, None, thing({"text": "x"}))
    emptied = applied(main, created, thing())
    assert not entries(emptied)
    assert without_managed_fields(emptied) == thing()


def test_what_somebody_else_owns_too_stays(main: FieldManager) -> None:
    live = applied(main, None, thing({"text": "x", "number": 1}))
    live = applied(main, live, thing({"text": "x"}), "b")
    left = applied(main, live, thing(), "a")
    assert left["spec"] == {"text": "x"}
    assert managers(left) == [("b", "Apply")]


def test_what_an_updater_has_set_since_stays_when_it_is_no_longer_applied(main: FieldManager) -> None:
    live = applied(main, None, thing({"text": "x"}))
    live = updated(main, live, thing({"text": "y"}))
    left = applied(main, live, thing({"number": 1}))
    assert left["spec"] == {"text": "y", "number": 1}
    assert fields_of(left, "u", "Update") == TEXT


def test_items_that_nobody_owns_stay_beside_others_and_go_with_their_list(main: FieldManager) -> None:
    live = applied(main, None, thing({"items": [{"name": "a"}]}))
    live["spec"]["items"].append({"name": "stray"})
    assert applied(main, live, thing({"items": [{"name": "b"}]}))["spec"] == {
        "items": [{"name": "stray"}, {"name": "b"}]
    }
    assert "spec" not in applied(main, live, thing())


def test_saying_what_is_already_so_makes_a_co_owner_without_a_time(main: FieldManager, clock: Clock) -> None:
    live = applied(main, None, thing({"text": "x"}))
    clock.advance()
    shared = applied(main, live, thing({"text": "x"}), "b")
    assert without_managed_fields(shared) == without_managed_fields(live)
    assert fields_of(shared, "a") == fields_of(shared, "b") == TEXT
    assert "time" not in entry_of(shared, "b")
    assert managers(shared) == [("b", "Apply"), ("a", "Apply")]


def test_a_co_owner_that_stops_keeps_the_time_it_had(main: FieldManager, clock: Clock) -> None:
    live = applied(main, None, thing({"text": "x", "number": 1}))
    live = applied(main, live, thing({"text": "x"}), "b")
    clock.advance()
    less = applied(main, live, thing({"number": 1}), "a")
    assert less["spec"] == {"text": "x", "number": 1}
    assert entry_of(less, "a")["time"] == MIDNIGHT


def test_changing_what_others_own_is_a_conflict(main: FieldManager) -> None:
    live = applied(main, None, thing({"text": "x", "set": ["a"]}))
    live = updated(main, live, thing({"text": "x", "set": ["a"], "number": 1}))
    with pytest.raises(ConflictsError) as raised:
        applied(main, live, thing({"text": "y", "number": 2, "set": ["a", "b"]}), "b")
    assert str(raised.value) == (
        'Apply failed with 2 conflicts: conflicts with "a":\n- .spec.text\n'
        'conflicts with "u" using example.com/v1:\n- .spec.number'
    )


def test_an_applier_conflicts_with_its_own_updates(main: FieldManager) -> None:
    live = updated(main, None, thing({"text": "x"}), "same")
    with pytest.raises(ConflictsError, match=r'conflict with "same" using example\.com/v1: \.spec\.text'):
        applied(main, live, thing({"text": "y"}), "same")


def test_force_takes_fields_from_their_owners(main: FieldManager, clock: Clock) -> None:
    live = applied(main, None, thing({"text": "x", "number": 1}))
    clock.advance()
    taken = applied(main, live, thing({"text": "y"}), "b", force=True)
    assert taken["spec"] == {"text": "y", "number": 1}
    assert fields_of(taken, "a") == {"f:spec": {"f:number": {}}}
    assert fields_of(taken, "b") == TEXT
    assert entry_of(taken, "a")["time"] == MIDNIGHT


def test_what_was_taken_by_force_is_not_pruned_by_the_former_owner(main: FieldManager) -> None:
    live = applied(main, None, thing({"text": "x", "number": 1}))
    live = applied(main, live, thing({"text": "y"}), "b", force=True)
    assert applied(main, live, thing({"number": 1}))["spec"] == {"text": "y", "number": 1}


def test_atomic_values_are_taken_as_a_whole(main: FieldManager) -> None:
    live = applied(main, None, thing({"list": ["a"], "atomicStruct": {"a": "x"}}))
    with pytest.raises(ConflictsError, match="2 conflicts"):
        applied(main, live, thing({"list": ["a", "b"], "atomicStruct": {"a": "x", "b": "y"}}), "b")
    taken = applied(main, live, thing({"list": ["b"], "atomicStruct": {"b": "y"}}), "b", force=True)
    assert taken["spec"] == {"list": ["b"], "atomicStruct": {"b": "y"}}
    assert managers(taken) == [("b", "Apply")]


def test_what_existed_before_the_first_apply_has_an_owner_from_then_on(main: FieldManager, clock: Clock) -> None:
    live = thing({"text": "x", "number": 1}, uid="u")
    clock.advance()
    changed = applied(main, live, thing({"text": "x", "flag": True}))
    assert fields_of(changed, "before-first-apply", "Update") == {"f:spec": {".": {}, "f:text": {}, "f:number": {}}}
    assert entry_of(changed, "before-first-apply", "Update")["time"] == LATER
    with pytest.raises(ConflictsError, match=r'conflict with "before-first-apply" using example\.com/v1: \.spec\.text'):
        applied(main, live, thing({"text": "y"}))


def test_items_of_different_managers_live_in_one_list(main: FieldManager) -> None:
    reference = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u1"}
    live = applied(main, None, thing({"items": [{"name": "a", "value": "1"}]}, finalizers=["x/a"]))
    live = applied(main, live, thing({"items": [{"name": "b"}]}, finalizers=["x/b"], ownerReferences=[reference]), "b")
    assert live["spec"]["items"] == [{"name": "a", "value": "1"}, {"name": "b"}]
    assert live["metadata"]["finalizers"] == ["x/a", "x/b"]
    live = applied(main, live, thing(), "b")
    assert live["spec"]["items"] == [{"name": "a", "value": "1"}]
    assert live["metadata"]["finalizers"] == ["x/a"]
    assert "ownerReferences" not in live["metadata"]


def test_nulls_in_place_of_containers_count_as_absent(main: FieldManager) -> None:
    created = applied(
        main, None, thing({"struct": None, "set": None, "text": "x", "items": [{"name": "a", "tags": None}]})
    )
    assert created["spec"] == {"text": "x", "items": [{"name": "a"}]}


def test_the_result_can_be_changed_without_changing_the_entries_of_the_live_object(main: FieldManager) -> None:
    live = applied(main, None, thing({"text": "x"}))
    before = copy.deepcopy(live)
    result = applied(main, live, thing({"text": "x"}))
    result["metadata"]["managedFields"].append({})
    result["metadata"]["name"] = "other"
    result["spec"] = {}
    assert live == before


# Configurations that cannot be applied


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "Other"}, "invalid object type: example.com/v1, Kind=Other"),
        ({"apiVersion": "example.com/v2"}, "invalid object type: example.com/v2, Kind=Thing"),
        ({"apiVersion": "v1"}, "invalid object type: /v1, Kind=Thing"),
        ({"apiVersion": "a/b/c"}, "invalid object type: /, Kind="),
        ({"apiVersion": None}, "invalid object type: /, Kind=Thing"),
        ({"kind": 5}, "invalid object type: example.com/v1, Kind="),
        ({"metadata": {"managedFields": []}}, "metadata.managedFields must be nil"),
        ({"metadata": {"managedFields": [{}]}}, "metadata.managedFields must be nil"),
        (
            {"spec": {"nope": 1}},
            (
                "failed to create typed patch object (/thing; example.com/v1, Kind=Thing): "
                ".spec.nope: field not declared in schema"
            ),
        ),
        (
            {"metadata": "x"},
            "failed to create typed patch object (/; example.com/v1, Kind=Thing): .metadata: expected map, got &{x}",
        ),
        (
            {"metadata": {"name": 5, "namespace": "ns"}},
            (
                "failed to create typed patch object (ns/; example.com/v1, Kind=Thing): "
                ".metadata.name: expected string, got &value.valueUnstructured{Value:5}"
            ),
        ),
    ],
)
def test_what_cannot_be_applied_is_told_in_kubernetes_words(
    main: FieldManager, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidConfigurationError) as raised:
        applied(main, None, {**thing({"text": "x"}), **change}, force=True)
    assert str(raised.value) == message


# The object and its status


def test_through_the_main_endpoint_nobody_owns_status(main: FieldManager) -> None:
    created = updated(main, None, thing({"text": "x"}, status={"phase": "p"}))
    assert fields_of(created, "u", "Update") == {"f:spec": {".": {}, "f:text": {}}}
    owner = applied(main, created, thing({"number": 1}, status={"phase": "q"}))
    assert fields_of(owner, "a") == {"f:spec": {"f:number": {}}}


def test_through_status_nobody_owns_spec_or_metadata(main: FieldManager, status: FieldManager) -> None:
    live = updated(main, None, thing({"text": "x"}))
    changed = updated(status, live, thing({"text": "y"}, status={"phase": "p"}, labels={"l": "1"}), "controller")
    assert fields_of(changed, "controller", "Update") == {"f:status": {".": {}, "f:phase": {}}}
    assert entry_of(changed, "controller", "Update")["subresource"] == "status"
    assert fields_of(changed, "u", "Update") == {"f:spec": {".": {}, "f:text": {}}}


def test_one_manager_has_entries_for_the_object_and_for_its_status(main: FieldManager, status: FieldManager) -> None:
    live = applied(main, None, thing({"text": "x"}))
    live = applied(status, live, thing(status={"phase": "p", "conditions": [{"type": "OK", "status": "True"}]}))
    assert [(each["manager"], each.get("subresource")) for each in entries(live)] == [("a", None), ("a", "status")]
    live = applied(status, live, thing(status={"phase": "p"}))
    assert live["spec"] == {"text": "x"}
    assert live["status"] == {"phase": "p"}


def test_a_conflict_over_status_names_the_subresource(main: FieldManager, status: FieldManager) -> None:
    live = updated(main, None, thing({"text": "x"}))
    live = updated(status, live, {**live, "status": {"phase": "p"}}, "controller")
    with pytest.raises(ConflictsError) as raised:
        applied(status, live, thing(status={"phase": "q"}), "b")
    assert str(raised.value) == (
        'Apply failed with 1 conflict: conflict with "controller" with subresource "status" '
        "using example.com/v1: .status.phase"
    )
    assert applied(main, live, thing({"text": "x"}, status={"phase": "q"}), "b")


def test_a_struct_that_is_applied_as_empty_is_there_and_empty(main: FieldManager) -> None:
    live = main.apply(None, thing({"structs": {"q": {"a": "x"}}}), manager="a", force=False)
    emptied = main.apply(live, thing({"structs": {"q": {}}}), manager="a", force=False)
    assert emptied["spec"] == {"structs": {"q": {}}}
    assert main.apply(emptied, thing({"structs": {"q": {}}}), manager="a", force=False) == emptied
