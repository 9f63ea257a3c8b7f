from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.apimachinery.fieldmanager.managed_fields import (
    MOST_UPDATERS,
    Identity,
    MalformedEntryError,
    differ_only_in_time,
    entry_for,
    from_client,
    identity_of,
    is_reset,
    merge_oldest,
    own_and_others,
    to_stored,
)

V1, V2 = "example.com/v1", "example.com/v2"


def entry(manager: str, operation: str = "Update", *, minute: int | None = 0, **rest: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "manager": manager,
        "operation": operation,
        "apiVersion": V1,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {f"f:{manager}": {}}},
    }
    if minute is not None:
        made["time"] = f"2024-01-01T00:{minute:02}:00Z"
    return made | rest


def order(entries: list[dict[str, Any]]) -> list[Any]:
    return [(each["manager"], each.get("time", "")[14:16]) for each in entries]


def test_the_version_is_a_part_of_an_updaters_identity_alone() -> None:
    assert identity_of(entry("a")) == Identity("a", "Update", V1, "")
    assert identity_of(entry("a", apiVersion=V2)) == Identity("a", "Update", V2, "")
    assert identity_of(entry("a", "Apply")) == Identity("a", "Apply", "", "")
    assert identity_of(entry("a", "Apply", subresource="status")) == Identity("a", "Apply", "", "status")


def test_entries_are_handed_on_as_they_are() -> None:
    entries = [entry("a", "Apply"), entry("b")]
    assert all(kept is given for kept, given in zip(to_stored(entries), entries, strict=True))
    assert to_stored([]) == []


def test_the_entry_of_an_identity_is_separated_from_the_others() -> None:
    entries = [
        entry("a", "Apply"),
        entry("a", "Apply", subresource="status"),
        entry("a"),
        entry("a", apiVersion=V2),
        entry("a", subresource="status"),
        entry("b"),
    ]
    nameless = [{name: value for name, value in entry("").items() if name != "manager"}]
    for each in entries + nameless:
        own, others = own_and_others(entries + nameless, identity_of(each))
        assert own is each
        assert others == [other for other in entries + nameless if other is not each]
    assert own_and_others(entries, Identity("c", "Update", V1, "")) == (None, entries)


def test_an_applier_has_one_identity_in_every_version() -> None:
    entries = [entry("a", "Apply", apiVersion=V2)]
    assert own_and_others(entries, Identity("a", "Apply", "", "")) == (entries[0], [])


def test_entries_are_ordered_by_operation_time_manager_version_and_subresource() -> None:
    ordered = [
        entry("z", "Apply", minute=None),
        entry("b", "Apply", minute=1),
        entry("a", "Apply", minute=2),
        entry("c", "Update", minute=None),
        entry("a", "Update", minute=1),
        entry("a", "Update", minute=1, subresource="status"),
        entry("a", "Update", minute=1, apiVersion=V2),
        entry("b", "Update", minute=1),
    ]
    assert to_stored(ordered[::-1]) == ordered
    with_times = [each for each in ordered if "time" in each]
    assert to_stored(with_times[::-1]) == with_times


def test_a_clients_entries_are_read_into_the_one_form() -> None:
    sent = [entry("a", fieldsV1={"f:spec": {".": {}}, "x:future": {}})]
    before = copy.deepcopy(sent)
    (read,) = from_client(sent)
    assert read == {**entry("a"), "fieldsV1": {"f:spec": {}}}
    assert sent == before


def test_a_clients_entry_may_lack_fields_manager_and_time() -> None:
    (read,) = from_client([{"operation": "Apply", "apiVersion": V1, "fieldsType": "FieldsV1"}])
    assert identity_of(read) == Identity("", "Apply", "", "")
    assert read["fieldsV1"] == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"operation": "Patch"}, "operation must be `Apply` or `Update`"),
        ({"operation": ""}, "operation must be `Apply` or `Update`"),
        ({"apiVersion": ""}, "apiVersion must not be empty"),
        ({"fieldsType": "FieldsV2"}, "fieldsType"),
        ({"fieldsType": ""}, "fieldsType"),
        ({"fieldsV1": {"spec": {}}}, "spec"),
        ({"fieldsV1": []}, "must be a map"),
        ({"fieldsV1": {"f:a": {"k:[]": {}}}}, "must be a map"),
    ],
)
def test_a_malformed_entry_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedEntryError, match=message):
        from_client([entry("a"), {**entry("b"), **wrong}])


@pytest.mark.parametrize("missing", ["operation", "apiVersion", "fieldsType"])
def test_an_entry_needs_operation_version_and_type(missing: str) -> None:
    with pytest.raises(MalformedEntryError):
        from_client([{name: value for name, value in entry("a").items() if name != missing}])


def test_an_entry_names_its_subresource_and_time_only_when_it_has_them() -> None:
    fields: dict[str, Any] = {"f:a": {}}
    plain = entry_for(Identity("a", "Apply", "", ""), api_version=V1, fields=fields, time=None)
    assert plain == {
        "manager": "a",
        "operation": "Apply",
        "apiVersion": V1,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    full = entry_for(Identity("a", "Apply", "", "status"), api_version=V1, fields=fields, time="now")
    assert full == plain | {"subresource": "status", "time": "now"}


def test_of_a_clients_entries_with_one_identity_the_last_counts() -> None:
    first, last = entry("a", fieldsV1={"f:x": {}}), entry("a", minute=1)
    assert from_client([first, entry("b"), last]) == [last, entry("b")]


def updaters(count: int, **rest: Any) -> list[dict[str, Any]]:
    return [entry(f"m{number:02}", minute=number, **rest) for number in range(count)]


def merged(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    before = copy.deepcopy(entries)
    result = merge_oldest(entries)
    assert entries == before
    return to_stored(result)


def test_as_many_updates_as_allowed_are_kept_and_applies_do_not_count() -> None:
    entries = [entry(f"a{number}", "Apply") for number in range(MOST_UPDATERS)] + updaters(MOST_UPDATERS)
    assert merged(entries) == entries


def test_the_two_oldest_updates_are_merged_under_the_later_time() -> None:
    result = merged(updaters(11))
    assert order(result) == [("ancient-changes", "01"), *((f"m{number:02}", f"{number:02}") for number in range(2, 11))]
    assert result[0]["fieldsV1"] == {"f:spec": {"f:m00": {}, "f:m01": {}}}
    assert result[0]["apiVersion"] == V1


def test_further_updates_are_merged_into_the_ancient_ones() -> None:
    result = merged([entry("ancient-changes", minute=1), *updaters(14)[2:]])
    assert len(result) == MOST_UPDATERS
    assert order(result)[:2] == [("ancient-changes", "04"), ("m05", "05")]
    assert set(result[0]["fieldsV1"]["f:spec"]) == {"f:ancient-changes", "f:m02", "f:m03", "f:m04"}


def test_younger_ancient_changes_absorb_what_is_older() -> None:
    result = merged([*updaters(11)[1:], entry("ancient-changes", minute=20)])
    assert len(result) == MOST_UPDATERS
    (bucket,) = [each for each in result if each["manager"] == "ancient-changes"]
    assert "f:ancient-changes" in bucket["fieldsV1"]["f:spec"]
    owned = {name for each in result for name in each["fieldsV1"]["f:spec"]}
    assert owned == {"f:ancient-changes", *(f"f:m{number:02}" for number in range(1, 11))}


def test_updates_of_different_versions_are_merged_apart() -> None:
    entries = [entry("old", minute=0, apiVersion=V2), *updaters(11)[1:]]
    result = merged(entries)
    assert order(result)[:3] == [("old", "00"), ("ancient-changes", "02"), ("m03", "03")]
    assert len(result) == MOST_UPDATERS


def test_updates_of_ten_versions_cannot_be_merged() -> None:
    entries = [entry("m", minute=number, apiVersion=f"example.com/v{number}") for number in range(12)]
    assert merged(entries) == entries


def test_updates_through_a_subresource_are_merged_with_the_others() -> None:
    entries = [entry("controller", minute=0, subresource="status"), *updaters(11)[1:]]
    first = merged(entries)[0]
    assert (first["manager"], "subresource" in first) == ("ancient-changes", False)
    assert first["fieldsV1"] == {"f:spec": {"f:controller": {}, "f:m01": {}}}


def test_updates_of_one_moment_are_merged_in_the_order_of_their_names() -> None:
    result = merged([{**each, "time": "2024-01-01T00:00:00Z"} for each in reversed(updaters(11))])
    (bucket,) = [each for each in result if each["manager"] == "ancient-changes"]
    assert bucket["fieldsV1"] == {"f:spec": {"f:m00": {}, "f:m01": {}}}


@pytest.mark.parametrize(
    ("entries", "reset"),
    [(None, False), ([], False), ([{}], True), ([{}, {}], False), ([{"manager": "a"}], False)],
)
def test_one_empty_entry_is_a_reset(entries: Any, *, reset: bool) -> None:
    assert is_reset(entries) is reset


def test_entries_that_differ_only_in_time_are_detected() -> None:
    one = [entry("a"), entry("b", "Apply", minute=None)]
    later = [entry("a", minute=5), entry("b", "Apply", minute=6)]
    assert differ_only_in_time(one, later)
    assert differ_only_in_time(one, copy.deepcopy(one))
    assert not differ_only_in_time(one, later[:1])
    assert not differ_only_in_time(one, [entry("a", fieldsV1={"f:x": {}}), later[1]])
    assert not differ_only_in_time(one, [entry("c"), later[1]])
    assert not differ_only_in_time(one, None)
    assert not differ_only_in_time(None, one)
    assert not differ_only_in_time([], [])


def test_identities_are_sorted_by_their_json() -> None:
    plain, status = Identity("a", "Apply", "", ""), Identity("a", "Apply", "", "status")
    updater = Identity("a", "Update", V1, "")
    assert plain.sort_key == b'{"manager":"a","operation":"Apply"}'
    assert status.sort_key == b'{"manager":"a","operation":"Apply","subresource":"status"}'
    assert updater.sort_key == b'{"manager":"a","operation":"Update","apiVersion":"example.com/v1"}'
