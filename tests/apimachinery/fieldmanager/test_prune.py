"""What goes when a manager applies less; in one version, through the entrance that everybody uses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apimachinery.fieldmanager.schemas import Clock, field_manager, thing


def pruned(first: Any, then: Any, *, others: Any = None) -> Any:
    """The spec that is left when a manager applies first one and then another, beside what others apply."""
    main = field_manager(Clock())
    live = main.apply(None, thing(first), manager="a", force=False)
    if others is not None:
        live = main.apply(live, thing(others), manager="b", force=False)
    return main.apply(live, thing(then), manager="a", force=False).get("spec")


@pytest.mark.parametrize(
    ("first", "then", "left"),
    [
        ({"text": "x"}, None, None),
        ({"text": "x"}, {"text": "y"}, {"text": "y"}),
        ({"text": "x", "number": 1}, {"number": 1}, {"number": 1}),
        ({"struct": {"a": "x", "b": "y"}}, {"struct": {"b": "y"}}, {"struct": {"b": "y"}}),
        ({"struct": {"deep": {"c": "x"}}, "text": "x"}, {"text": "x"}, {"text": "x"}),
        ({"map": {"a": "1", "b": "2"}}, {"map": {"b": "2"}}, {"map": {"b": "2"}}),
        ({"structs": {"k": {"a": "x", "b": "y"}}}, {"structs": {"k": {"a": "x"}}}, {"structs": {"k": {"a": "x"}}}),
        ({"set": ["a", "b"]}, {"set": ["b"]}, {"set": ["b"]}),
        ({"list": ["a"], "text": "x"}, {"text": "x"}, {"text": "x"}),
        ({"atomicStruct": {"a": "x", "b": "y"}}, {"atomicStruct": {"a": "x"}}, {"atomicStruct": {"a": "x"}}),
        ({"items": [{"name": "a"}, {"name": "b"}]}, {"items": [{"name": "b"}]}, {"items": [{"name": "b"}]}),
        (
            {"items": [{"name": "a", "value": "1", "tags": ["x"]}]},
            {"items": [{"name": "a"}]},
            {"items": [{"name": "a"}]},
        ),
        (
            {"ports": [{"port": 1}, {"port": 2}]},
            {"ports": [{"port": 1, "protocol": "TCP"}]},
            {"ports": [{"port": 1, "protocol": "TCP"}]},
        ),
        ({"struct": {}, "text": "x"}, {"text": "x"}, {"text": "x"}),
    ],
)
def test_what_is_applied_no_more_goes_with_what_held_nothing_else(first: Any, then: Any, left: Any) -> None:
    assert pruned(first, then) == left


@pytest.mark.parametrize(
    ("first", "others", "left"),
    [
        ({"text": "x"}, {"text": "x"}, {"text": "x"}),
        ({"struct": {"a": "x"}}, {"struct": {"b": "y"}}, {"struct": {"b": "y"}}),
        ({"map": {"a": "1"}}, {"map": {"b": "2"}}, {"map": {"b": "2"}}),
        ({"set": ["a", "b"]}, {"set": ["b", "c"]}, {"set": ["b", "c"]}),
        ({"items": [{"name": "a"}]}, {"items": [{"name": "b"}]}, {"items": [{"name": "b"}]}),
        (
            {"items": [{"name": "a", "value": "1"}]},
            {"items": [{"name": "a", "tags": ["t"]}]},
            {"items": [{"name": "a", "tags": ["t"]}]},
        ),
        ({"structs": {"k": {"a": "x"}}}, {"structs": {"k": {"b": "y"}}}, {"structs": {"k": {"b": "y"}}}),
        ({"struct": {"a": "x"}, "text": "x"}, {"number": 1}, {"number": 1}),
    ],
)
def test_what_others_apply_stays(first: Any, others: Any, left: Any) -> None:
    assert pruned(first, None, others=others) == left


def test_the_name_and_what_the_server_set_are_never_pruned() -> None:
    main = field_manager(Clock())
    live = main.apply(None, thing(labels={"l": "1"}), manager="a", force=False)
    live["metadata"] |= {"uid": "u", "resourceVersion": "1", "creationTimestamp": "2024-01-01T00:00:00Z"}
    left = main.apply(live, {"apiVersion": live["apiVersion"], "kind": live["kind"]}, manager="a", force=False)
    assert {name: value for name, value in left["metadata"].items() if name != "managedFields"} == {
        "name": "thing",
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2024-01-01T00:00:00Z",
    }


def test_defaults_and_other_fields_that_nobody_owns_stay() -> None:
    main = field_manager(Clock())
    live = main.apply(None, thing({"struct": {"a": "x"}, "text": "x"}), manager="a", force=False)
    live["spec"]["struct"]["b"] = "default"
    live["spec"]["number"] = 5
    assert main.apply(live, thing({"struct": {"a": "x"}}), manager="a", force=False)["spec"] == {
        "struct": {"a": "x", "b": "default"},
        "number": 5,
    }
