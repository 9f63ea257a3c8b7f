from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.fieldmanager.errors import Conflict, conflicts_error
from clusterregistry.apimachinery.fieldmanager.managed_fields import Identity

V1 = "example.com/v1"
TEXT: dict[str, Any] = {"f:spec": {"f:text": {}}}


def test_one_conflict_is_told_in_one_line() -> None:
    error = conflicts_error({Identity("alice", "Apply", "", ""): TEXT})
    assert str(error) == 'Apply failed with 1 conflict: conflict with "alice": .spec.text'
    assert error.conflicts == [Conflict(".spec.text", '"alice"')]


def test_who_updated_is_named_with_the_version() -> None:
    error = conflicts_error({Identity("alice", "Update", V1, ""): TEXT})
    assert str(error) == 'Apply failed with 1 conflict: conflict with "alice" using example.com/v1: .spec.text'
    assert error.conflicts == [Conflict(".spec.text", '"alice" using example.com/v1')]


def test_who_wrote_through_a_subresource_is_named_with_it() -> None:
    applied = conflicts_error({Identity("alice", "Apply", "", "status"): TEXT})
    assert str(applied) == 'Apply failed with 1 conflict: conflict with "alice" with subresource "status": .spec.text'
    updated = conflicts_error({Identity("alice", "Update", V1, "status"): TEXT})
    assert str(updated).endswith('"alice" with subresource "status" using example.com/v1: .spec.text')


def test_several_conflicts_with_one_manager_are_listed() -> None:
    fields = {"f:spec": {"f:text": {}, "f:items": {'k:{"name":"a"}': {"f:value": {}}}, "f:map": {"f:a/b": {}}}}
    error = conflicts_error({Identity('al"ice', "Apply", "", ""): fields})
    assert str(error) == (
        'Apply failed with 3 conflicts: conflicts with "al\\"ice":\n'
        "- .spec.text\n"
        '- .spec.items[name="a"].value\n'
        "- .spec.map.a/b"
    )


def test_several_managers_are_listed_in_the_order_of_their_names() -> None:
    error = conflicts_error(
        {
            Identity("carol", "Update", V1, ""): TEXT,
            Identity("bob", "Update", V1, "status"): {"f:status": {"f:phase": {}}},
            Identity("bob", "Apply", "", ""): {"f:spec": {".": {}, "f:set": {'v:"a"': {}}}},
        }
    )
    assert str(error) == (
        'Apply failed with 4 conflicts: conflicts with "bob":\n'
        "- .spec\n"
        '- .spec.set[="a"]\n'
        'conflicts with "bob" with subresource "status" using example.com/v1:\n'
        "- .status.phase\n"
        'conflicts with "carol" using example.com/v1:\n'
        "- .spec.text"
    )
    assert [each.field for each in error.conflicts] == [".spec", '.spec.set[="a"]', ".status.phase", ".spec.text"]
