"""Two versions of a kind, of which the second calls ``color`` what the first calls ``colour``."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.apimachinery.fieldmanager.errors import ConflictsError
from clusterregistry.apimachinery.fieldmanager.field_manager import FieldManager, View
from clusterregistry.apimachinery.meta.object_meta_schema import whole_object
from clusterregistry.apimachinery.schema.schemas import Object, Schema
from tests.apimachinery.fieldmanager.schemas import (
    SPEC,
    STATUS,
    Clock,
    entries,
    entry_of,
    field_manager,
    fields_of,
    managers,
    thing,
)

V1, V2 = "example.com/v1", "example.com/v2"


def schema(colour: str) -> Object:
    renamed: dict[str, Schema] = {colour: SPEC["struct"]}
    return whole_object(Object(fields={"spec": Object(fields=renamed | SPEC), "status": STATUS}))


def renamed(obj: dict[str, Any], api_version: str, before: str, after: str) -> dict[str, Any]:
    """As a converter does that never expects null in place of a struct."""
    converted = {**obj, "apiVersion": api_version}
    if "spec" in obj:
        converted["spec"] = {after if name == before else name: value for name, value in obj["spec"].items()}
    return converted


def to_v1(obj: dict[str, Any]) -> dict[str, Any]:
    return renamed(obj, V1, "color", "colour")


def to_v2(obj: dict[str, Any]) -> dict[str, Any]:
    return renamed(obj, V2, "colour", "color")


VIEWS = {
    V1: View(schema=schema("colour"), to_storage=lambda obj: obj, from_storage=lambda obj: obj),
    V2: View(schema=schema("color"), to_storage=to_v1, from_storage=to_v2),
}
RED = {"a": "red"}
COLOUR: dict[str, Any] = {"f:spec": {"f:colour": {"f:a": {}}}}
COLOR: dict[str, Any] = {"f:spec": {"f:color": {"f:a": {}}}}


@pytest.fixture
def v1() -> FieldManager:
    return field_manager(Clock(), views=VIEWS, api_version=V1)


@pytest.fixture
def v2() -> FieldManager:
    return field_manager(Clock(), views=VIEWS, api_version=V2)


def one(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return thing(spec, api_version=V1, **metadata)


def two(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return thing(spec, api_version=V2, **metadata)


def apply(
    owner: FieldManager,
    live: dict[str, Any] | None,
    configuration: dict[str, Any],
    manager: str,
    *,
    force: bool = False,
) -> dict[str, Any]:
    before = copy.deepcopy((live, configuration))
    try:
        return owner.apply(live, configuration, manager=manager, force=force)
    finally:
        assert (live, configuration) == before


def update(owner: FieldManager, live: dict[str, Any] | None, obj: dict[str, Any], manager: str) -> dict[str, Any]:
    result = copy.deepcopy(obj)
    owner.record_update(live, result, manager=manager)
    return result


def test_entries_name_fields_in_the_words_of_their_version(v1: FieldManager, v2: FieldManager) -> None:
    live = apply(v1, None, one({"colour": RED}), "a")
    shared = apply(v2, to_v2(live), two({"color": RED}), "b")
    assert fields_of(shared, "a") == COLOUR
    assert fields_of(shared, "b") == COLOR
    assert [each["apiVersion"] for each in (entry_of(shared, "a"), entry_of(shared, "b"))] == [V1, V2]
    assert shared["spec"] == {"color": RED}


def test_a_conflict_with_an_entry_of_another_version_is_found(v1: FieldManager, v2: FieldManager) -> None:
    live = apply(v1, None, one({"colour": RED}), "a")
    with pytest.raises(ConflictsError, match=r'conflict with "a": \.spec\.colour\.a'):
        apply(v2, to_v2(live), two({"color": {"a": "blue"}}), "b")
    live = update(v1, None, one({"colour": RED}), "u")
    with pytest.raises(ConflictsError, match=r'conflict with "u" using example\.com/v1: \.spec\.colour\.a'):
        apply(v2, to_v2(live), two({"color": {"a": "blue"}}), "b")


def test_force_takes_from_an_entry_of_another_version(v1: FieldManager, v2: FieldManager) -> None:
    live = apply(v1, None, one({"colour": RED, "text": "x"}), "a")
    taken = apply(v2, to_v2(live), two({"color": {"a": "blue"}}), "b", force=True)
    assert taken["spec"] == {"color": {"a": "blue"}, "text": "x"}
    assert fields_of(taken, "a") == {"f:spec": {"f:text": {}}}
    assert fields_of(taken, "b") == COLOR


def test_an_update_takes_from_entries_of_other_versions(v1: FieldManager, v2: FieldManager) -> None:
    live = apply(v1, None, one({"colour": RED, "text": "x"}), "a")
    changed = update(v2, to_v2(live), two({"color": {"a": "blue"}, "text": "x"}), "u")
    assert fields_of(changed, "a") == {"f:spec": {"f:text": {}}}
    assert fields_of(changed, "u", "Update") == COLOR
    gone = update(v2, to_v2(live), two({"text": "x"}), "u")
    assert fields_of(gone, "a") == {"f:spec": {"f:text": {}}}


def test_updates_of_one_manager_in_two_versions_are_two_entries(v1: FieldManager, v2: FieldManager) -> None:
    live = update(v1, None, one({"text": "x"}), "u")
    changed = update(v2, to_v2(live), two({"text": "x", "color": RED}), "u")
    assert sorted(each["apiVersion"] for each in entries(changed)) == [V1, V2]


def test_the_same_apply_in_another_version_keeps_its_fields(v1: FieldManager, v2: FieldManager) -> None:
    live = apply(v1, None, one({"colour": RED, "text": "x"}), "a")
    moved = apply(v2, to_v2(live), two({"color": RED, "text": "x"}), "a")
    assert moved["spec"] == {"color": RED, "text": "x"}
    assert managers(moved) == [("a", "Apply")]
    assert entry_of(moved, "a")["apiVersion"] == V2
    assert fields_of(moved, "a") == {"f:spec": {"f:color": {"f:a": {}}, "f:text": {}}}


def test_an_apply_of_the_renamed_field_in_another_version_keeps_it(v1: FieldManager, v2: FieldManager) -> None:
    live = apply(v1, None, one({"colour": RED}), "a")
    assert apply(v2, to_v2(live), two({"color": RED}), "a")["spec"] == {"color": RED}


def test_what_is_given_up_in_another_version_goes(v1: FieldManager, v2: FieldManager) -> None:
    live = apply(v1, None, one({"colour": RED, "text": "x"}), "a")
    assert apply(v2, to_v2(live), two({"text": "x"}), "a")["spec"] == {"text": "x"}
    assert apply(v2, to_v2(live), two({"color": RED}), "a")["spec"] == {"color": RED}
    assert "spec" not in apply(v2, to_v2(live), two(), "a")


def test_what_is_owned_in_another_version_is_not_pruned(v1: FieldManager, v2: FieldManager) -> None:
    live = apply(v1, None, one({"colour": RED, "text": "x"}), "a")
    live = to_v1(apply(v2, to_v2(live), two({"color": RED}), "b"))
    left = apply(v1, live, one({"text": "x"}), "a")
    assert left["spec"] == {"colour": RED, "text": "x"}
    assert fields_of(left, "a") == {"f:spec": {"f:text": {}}}
    assert fields_of(left, "b") == COLOR


def test_items_without_an_owner_are_not_pruned_across_versions(v1: FieldManager, v2: FieldManager) -> None:
    """As structured-merge-diff does: what pruning leaves empty is still there."""
    live = two(
        {"items": [{"name": "stray"}, {"name": "d", "value": "x"}]},
        managedFields=[
            managed_entry("a", "Apply", V2, {"f:spec": {"f:items": {'k:{"name":"b"}': {".": {}, "f:name": {}}}}}),
            managed_entry("u", "Update", V2, {"f:spec": {"f:items": {'k:{"name":"d"}': {"f:value": {}}}}}),
        ],
    )
    expected = [{"name": "stray"}, {"name": "d", "value": "x"}]
    assert apply(v2, live, two(), "a")["spec"]["items"] == expected
    assert apply(v1, to_v1(live), one(), "a")["spec"]["items"] == expected


def managed_entry(manager: str, operation: str, api_version: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


@pytest.mark.parametrize("spec", [None, {"color": None}, {"struct": None}, {"items": None, "set": None}])
def test_converters_never_meet_null_in_place_of_a_struct(v1: FieldManager, v2: FieldManager, spec: Any) -> None:
    live = apply(v1, None, one({"colour": RED, "text": "x"}), "a")
    result = apply(v2, to_v2(live), {**two(), "spec": spec}, "b")
    assert result["spec"] == {"color": RED, "text": "x"}
    result = apply(v2, to_v2(live), {**two(), "spec": spec}, "a")
    assert "text" not in result.get("spec", {})


def test_the_same_apply_in_another_version_changes_only_the_entry(v1: FieldManager, v2: FieldManager) -> None:
    spec = {"text": "x", "items": [{"name": "a"}], "set": ["b"], "struct": {"a": "y"}}
    live = apply(v1, None, one(spec, labels={"l": "1"}), "a")
    moved = apply(v2, to_v2(live), two(spec, labels={"l": "1"}), "a")
    assert {**moved, "apiVersion": V1, "metadata": {**moved["metadata"], "managedFields": None}} == {
        **live,
        "metadata": {**live["metadata"], "managedFields": None},
    }
    assert {**entry_of(moved, "a"), "apiVersion": V1} == entry_of(live, "a")
