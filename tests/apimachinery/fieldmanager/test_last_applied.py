from __future__ import annotations

import json
from typing import Any

import pytest

from clusterregistry.apimachinery.fieldmanager.errors import ConflictsError
from clusterregistry.apimachinery.fieldmanager.field_manager import FieldManager
from clusterregistry.apimachinery.fieldmanager.last_applied import ANNOTATION, allowed_conflicts
from tests.apimachinery.fieldmanager.schemas import SCHEMA, Clock, field_manager, managers, thing


@pytest.fixture
def main() -> FieldManager:
    return field_manager(Clock())


def client_side_applied(main: FieldManager, spec: dict[str, Any], *, last: Any = None) -> dict[str, Any]:
    """An object as ``kubectl apply`` leaves it."""
    annotation = json.dumps(thing(spec)) if last is None else last
    obj = thing(spec, annotations={ANNOTATION: annotation})
    main.record_update(None, obj, manager="kubectl-client-side-apply")
    return obj


def test_what_kubectl_applied_before_may_be_taken_over(main: FieldManager) -> None:
    live = client_side_applied(main, {"text": "x", "set": ["a"]})
    taken = main.apply(live, thing({"text": "y", "set": ["b"]}), manager="kubectl", force=False)
    assert taken["spec"] == {"text": "y", "set": ["a", "b"]}
    assert ("kubectl", "Apply") in managers(taken)


def test_another_manager_may_not_take_it_over(main: FieldManager) -> None:
    live = client_side_applied(main, {"text": "x"})
    with pytest.raises(ConflictsError):
        main.apply(live, thing({"text": "y"}), manager="kubectl2", force=False)


def test_what_was_changed_since_may_not_be_taken_over(main: FieldManager) -> None:
    live = client_side_applied(main, {"text": "x", "number": 1})
    changed = thing({"text": "z", "number": 1}, annotations=live["metadata"]["annotations"])
    main.record_update(live, changed, manager="editor")
    with pytest.raises(ConflictsError) as raised:
        main.apply(changed, thing({"text": "y", "number": 2}), manager="kubectl", force=False)
    assert [each.field for each in raised.value.conflicts] == [".spec.text"]


def test_what_was_never_applied_may_not_be_taken_over(main: FieldManager) -> None:
    live = client_side_applied(main, {"text": "x"})
    changed = thing({"text": "x", "number": 1}, annotations=live["metadata"]["annotations"])
    main.record_update(live, changed, manager="editor")
    with pytest.raises(ConflictsError, match="editor"):
        main.apply(changed, thing({"text": "y", "number": 2}), manager="kubectl", force=False)


@pytest.mark.parametrize(
    "last",
    [
        "",
        "{",
        "null",
        "[]",
        '"x"',
        "{}",
        json.dumps(thing({"text": "x"}, api_version="example.com/v2")),
        json.dumps({**thing({"text": "x"}), "kind": "Other"}),
        json.dumps(thing({"text": "x", "nope": 1})),
        json.dumps(thing({"text": "x", "set": ["a", "a"]})),
    ],
)
def test_an_unusable_annotation_allows_nothing(main: FieldManager, last: str) -> None:
    live = client_side_applied(main, {"text": "x"}, last=last)
    assert allowed_conflicts(SCHEMA, live) == {}
    with pytest.raises(ConflictsError):
        main.apply(live, thing({"text": "y"}), manager="kubectl", force=False)


@pytest.mark.parametrize("annotations", [None, {}, {"other": "x"}])
def test_without_the_annotation_nothing_is_allowed(annotations: Any) -> None:
    assert allowed_conflicts(SCHEMA, thing({"text": "x"}, annotations=annotations)) == {}
    assert allowed_conflicts(SCHEMA, thing({"text": "x"})) == {}


def test_only_what_is_as_it_was_applied_is_allowed() -> None:
    last = thing({"text": "x", "number": 1, "map": {"a": "1", "b": "2"}, "set": ["a", "b"]})
    live = thing(
        {"text": "x", "number": 2, "map": {"a": "1"}, "set": ["b", "c"]}, annotations={ANNOTATION: json.dumps(last)}
    )
    assert allowed_conflicts(SCHEMA, live)["f:spec"] == {"f:text": {}, "f:map": {"f:a": {}}, "f:set": {'v:"b"': {}}}


def test_the_annotation_is_kept_in_step(main: FieldManager) -> None:
    live = client_side_applied(main, {"text": "x"})
    configuration = thing({"text": "<y>"}, annotations={"other": "é", ANNOTATION: "stale"}, labels={"b": "1", "a": "2"})
    applied = main.apply(live, configuration, manager="kubectl", force=True)
    assert applied["metadata"]["annotations"][ANNOTATION] == (
        '{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"annotations":{"other":"é"},'
        '"labels":{"a":"2","b":"1"},"name":"thing"},"spec":{"text":"\\u003cy\\u003e"}}\n'
    )
    assert applied["metadata"]["annotations"]["other"] == "é"


@pytest.mark.parametrize("metadata", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"annotations": None}}])
def test_the_annotation_is_kept_in_step_whatever_the_metadata(main: FieldManager, metadata: dict[str, Any]) -> None:
    live = client_side_applied(main, {"text": "x"})
    configuration = {"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"text": "x"}, **metadata}
    applied = main.apply(live, configuration, manager="kubectl", force=False)
    assert json.loads(applied["metadata"]["annotations"][ANNOTATION])["spec"] == {"text": "x"}


def test_for_another_manager_the_annotation_stays(main: FieldManager) -> None:
    live = client_side_applied(main, {"text": "x"})
    applied = main.apply(live, thing({"number": 1}), manager="other", force=False)
    assert applied["metadata"]["annotations"] == live["metadata"]["annotations"]


@pytest.mark.parametrize("annotations", [{}, {"annotations": {"other": "x"}}, {"annotations": {ANNOTATION: ""}}])
def test_no_annotation_is_made_where_none_is(main: FieldManager, annotations: dict[str, Any]) -> None:
    live = thing({"text": "x"}, **annotations)
    applied = main.apply(live, thing({"number": 1}), manager="kubectl", force=False)
    assert applied["metadata"].get("annotations") == live["metadata"].get("annotations")


def test_an_annotation_that_would_be_too_large_is_dropped(main: FieldManager) -> None:
    live = client_side_applied(main, {"text": "x"})
    applied = main.apply(live, thing({"text": "x" * 300_000}), manager="kubectl", force=False)
    assert applied["metadata"]["annotations"] == {}


def test_the_inputs_are_left_alone(main: FieldManager) -> None:
    live = client_side_applied(main, {"text": "x"})
    configuration = thing({"text": "y"}, annotations={ANNOTATION: "z"})
    before = json.dumps([live, configuration])
    main.apply(live, configuration, manager="kubectl", force=True)
    assert json.dumps([live, configuration]) == before
