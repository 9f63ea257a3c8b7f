import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.codecs import MAX_DEPTH
from clusterregistry.apimachinery.patch import InvalidPatch, PatchError, PatchFailed, PatchTooLarge, json_patch
from tests.apimachinery.codecs.wire_values import SMALL_MAPS, SMALL_VALUES

PATHS = st.lists(st.sampled_from(["a", "b", "c", "0", "1", "-", "-1"]), max_size=3).map(
    lambda tokens: "".join("/" + token for token in tokens)
)
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": PATHS},
    optional={"from": PATHS, "value": SMALL_VALUES},
)


def op(name: str, path: str, **rest: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **rest}


def move(name: str, source: str, path: str) -> dict[str, Any]:
    return {"op": name, "from": source, "path": path}


@given(SMALL_MAPS, st.lists(OPERATIONS, max_size=6))
def test_inputs_are_never_modified_and_only_patch_errors_raised(
    document: dict[str, Any], patch: list[dict[str, Any]]
) -> None:
    before = copy.deepcopy((document, patch))
    try:
        result = json_patch.apply(document, patch)
    except PatchError:
        pass
    else:
        assert isinstance(result, (dict, list))
    assert (document, patch) == before


@given(SMALL_MAPS, st.lists(OPERATIONS, max_size=6))
def test_many_operations_are_the_same_as_one_after_the_other(
    document: dict[str, Any], patch: list[dict[str, Any]]
) -> None:
    def one_by_one() -> Any:
        result: Any = document
        for operation in patch:
            result = json_patch.apply(result, [operation])
        return result

    try:
        expected = one_by_one()
    except PatchFailed:
        with pytest.raises(PatchFailed):
            json_patch.apply(document, patch)
    else:
        assert json_patch.equal(json_patch.apply(document, patch), expected)


@given(SMALL_VALUES, SMALL_VALUES)
def test_a_test_holds_exactly_for_equal_values(left: Any, right: Any) -> None:
    patch = [op("test", "/v", value=right)]
    if json_patch.equal(left, right):
        assert json_patch.apply({"v": left}, patch) == {"v": left}
    else:
        with pytest.raises(PatchFailed):
            json_patch.apply({"v": left}, patch)


# What the appendix of RFC 6902 demonstrates, with values of our own.
@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"zone": "a"}, [op("add", "/name", value="n")], {"zone": "a", "name": "n"}),
        ({"list": ["a", "c"]}, [op("add", "/list/1", value="b")], {"list": ["a", "b", "c"]}),
        ({"list": ["a"]}, [op("add", "/list/1", value="b")], {"list": ["a", "b"]}),
        ({"list": ["a"]}, [op("add", "/list/-", value=["b"])], {"list": ["a", ["b"]]}),
        ({"a": 1, "b": 2}, [op("remove", "/b")], {"a": 1}),
        ({"list": ["a", "b", "c"]}, [op("remove", "/list/1")], {"list": ["a", "c"]}),
        ({"a": 1, "b": 2}, [op("replace", "/b", value=3)], {"a": 1, "b": 3}),
        (
            {"from": {"x": 1, "y": 2}, "to": {"z": 3}},
            [move("move", "/from/x", "/to/w")],
            {"from": {"y": 2}, "to": {"z": 3, "w": 1}},
        ),
        ({"list": [1, 2, 3, 4]}, [move("move", "/list/1", "/list/3")], {"list": [1, 3, 4, 2]}),
        ({"a": {"x": [1]}}, [move("copy", "/a", "/b")], {"a": {"x": [1]}, "b": {"x": [1]}}),
        (
            {"a": "x", "l": [1, "y"]},
            [op("test", "/a", value="x"), op("test", "/l/1", value="y")],
            {"a": "x", "l": [1, "y"]},
        ),
        ({"a": 1}, [op("add", "/child", value={"deep": {}})], {"a": 1, "child": {"deep": {}}}),
        ({"a": 1}, [op("add", "/b", value=2, unknown="member")], {"a": 1, "b": 2}),
        ({"/": 9, "~1": 10}, [op("test", "/~01", value=10), op("replace", "/~1", value=8)], {"/": 8, "~1": 10}),
        ({"": 1}, [op("replace", "/", value=2)], {"": 2}),
        ({"a": 1}, [op("replace", "", value={"b": 2})], {"b": 2}),
        ({"a": 1}, [op("test", "", value={"a": 1.0})], {"a": 1}),
        ({"a": 1}, [op("add", "/a", value=None)], {"a": None}),
        ({"a": 1}, [], {"a": 1}),
        ([1], [op("add", "/0", value=0)], [0, 1]),
    ],
)
def test_operations_do_what_the_rfc_says(document: Any, patch: list[Any], result: Any) -> None:
    assert json_patch.apply(document, patch) == result


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": 1}, [op("test", "/b", value=None)], {"a": 1}),
        ({"a": 1}, [op("test", "/b")], {"a": 1}),
        ({"a": None}, [op("test", "/a", value=None)], {"a": None}),
        ({"a": {}}, [op("replace", "/a/b", value=1)], {"a": {"b": 1}}),
        ({"a": 1}, [op("add", "/b")], {"a": 1, "b": None}),
        ({"a": 1}, [move("copy", "/c", "/b")], {"a": 1, "b": None}),
        ({"l": [1, 2]}, [op("replace", "/l/-1", value=3)], {"l": [1, 3]}),
        ({"l": [1, 2]}, [op("add", "/l/-1", value=3)], {"l": [1, 2, 3]}),
        ({"l": [1, 2]}, [op("remove", "/l/-2")], {"l": [2]}),
        ({"l": [1, 2]}, [op("remove", "/l/+1")], {"l": [1]}),
        ({"a": 1}, None, {"a": 1}),
    ],
)
def test_operations_do_what_kube_apiserver_does_beyond_the_rfc(document: Any, patch: Any, result: Any) -> None:
    assert json_patch.apply(document, patch) == result


@pytest.mark.parametrize(
    "operation",
    [
        op("test", "/a", value=2),
        op("test", "/a", value=True),
        op("test", "/a", value="1"),
        op("test", "/a"),
        op("test", "/x/y", value=None),
        op("test", "/l/7", value=None),
        op("test", ""),
        op("replace", "/x/y", value=1),
        op("replace", "/l/2", value=1),
        op("replace", "/l/-", value=1),
        op("replace", "", value=1),
        op("replace", ""),
        op("remove", "/x"),
        op("remove", "/x/y"),
        op("remove", "/l/2"),
        op("remove", "/l/-3"),
        op("remove", ""),
        op("add", "/x/y", value=1),
        op("add", "/a/y", value=1),
        op("add", "/n/y", value=1),
        op("add", "/l/3", value=1),
        op("add", "/l/x", value=1),
        op("add", "/l/1e0", value=1),
        op("add", "/l/" + "9" * 5000, value=1),
        op("add", "/l/-/x", value=1),
        op("add", "", value={}),
        op("add", "x", value={}),
        op("add", "/l/\N{SUPERSCRIPT ONE}", value=1),
        move("move", "/x", "/y"),
        move("move", "/o", "/o/p"),
        move("copy", "/x/y", "/z"),
        op("move", "/z"),
        op("copy", "/z"),
        op("frobnicate", "/a", value=1),
        {"path": "/a", "value": 1},
        {"op": None, "path": "/a"},
        {"op": "add", "value": 1},
        {"op": "add", "path": None, "value": 1},
        {},
        None,
    ],
)
def test_operations_that_do_not_fit_fail(operation: Any) -> None:
    with pytest.raises(PatchFailed):
        json_patch.apply({"a": 1, "n": None, "l": [1, 2], "o": {}}, [operation])


@pytest.mark.parametrize(
    "patch", [{}, {"op": "add"}, "x", 1, True, [1], ["x"], [[]], [{"op": 1}], [op("add", "/a", **{"from": 2})]]
)
def test_what_is_no_json_patch_is_invalid(patch: Any) -> None:
    with pytest.raises(InvalidPatch, match=r"^error decoding patch: json: cannot unmarshal "):
        json_patch.apply({}, patch)


def test_a_document_that_is_a_scalar_cannot_be_patched() -> None:
    with pytest.raises(PatchFailed):
        json_patch.apply(1, [op("add", "/a", value=1)])


def test_ten_thousand_operations_are_applied() -> None:
    patch = [op("add", "/l/-", value=n) for n in range(json_patch.MAX_OPERATIONS)]
    assert json_patch.apply({"l": []}, patch) == {"l": list(range(10_000))}


def test_more_operations_are_too_many() -> None:
    patch = [op("test", "/a", value=None)] * 10_001
    with pytest.raises(PatchTooLarge) as raised:
        json_patch.apply({}, patch)
    assert str(raised.value) == "The allowed maximum operations in a JSON patch is 10000, got 10001"


def test_copies_cannot_grow_without_bound() -> None:
    patch = [move("copy", "/l", "/l/-")] * 60
    with pytest.raises(PatchFailed, match="Unable to complete the copy, the accumulated size increase of copy is"):
        json_patch.apply({"l": ["x" * 100]}, patch)


def test_copies_share_nothing_that_later_operations_change() -> None:
    patch = [
        op("add", "/a/x", value=1),
        move("copy", "/a", "/b"),
        op("add", "/a/y", value=2),
        op("add", "/b/z", value=3),
    ]
    assert json_patch.apply({"a": {}}, patch) == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "z": 3}}


def test_values_of_the_patch_stay_as_they_are() -> None:
    value: dict[str, Any] = {"x": {}}
    result = json_patch.apply({}, [op("add", "/a", value=value), op("add", "/a/x/y", value=1)])
    assert result == {"a": {"x": {"y": 1}}}
    assert value == {"x": {}}


def test_unchanged_parts_are_shared() -> None:
    document = {"spec": {"a": {"b": 1}}, "metadata": {"labels": {}}}
    result = json_patch.apply(document, [op("add", "/metadata/labels/x", value="1")])
    assert result["spec"] is document["spec"]


@pytest.mark.parametrize("operations", [1, 8])
def test_documents_cannot_become_too_deep(operations: int) -> None:
    deep: Any = []
    for _ in range(MAX_DEPTH - 10):
        deep = [deep]
    at = "/a" + "/0" * (MAX_DEPTH - 20)
    patch = [op("add", at, value=deep)] + [move("copy", "/a", at)] * (operations - 1)
    with pytest.raises(PatchFailed, match="nested too deeply"):
        json_patch.apply({"a": deep}, patch)


def test_members_that_no_operation_has_are_named() -> None:
    patch = [op("add", "/a", value={"x": 1}), op("add", "/b", extra=1, other=2), None]
    assert json_patch.unknown_fields(patch) == [
        'json patch unknown field "[1].extra"',
        'json patch unknown field "[1].other"',
    ]


def test_what_was_moved_shares_nothing_with_the_document_before() -> None:
    document = {"a": {"b": {"c": 1}}, "d": {"e": {}}}
    patched = json_patch.apply(document, [{"op": "move", "from": "/a/b", "path": "/d/b"}])
    assert patched == {"a": {}, "d": {"e": {}, "b": {"c": 1}}}
    patched["d"]["b"].clear()
    assert document == {"a": {"b": {"c": 1}}, "d": {"e": {}}}


def test_inserts_that_shift_a_long_list_again_and_again_are_too_much() -> None:
    insert = [{"op": "add", "path": "/a/0", "value": 1}]
    with pytest.raises(PatchTooLarge, match="list items that a JSON patch shifts is 100000000"):
        json_patch.apply({"a": [0] * 150_000}, insert * 1000)
    removals = [{"op": "remove", "path": "/a/0"}]
    with pytest.raises(PatchTooLarge):
        json_patch.apply({"a": [0] * 150_000}, removals * 1000)


def test_as_many_inserts_as_a_patch_may_have_make_a_list_from_its_end() -> None:
    made = json_patch.apply({"a": []}, [{"op": "add", "path": "/a/0", "value": number} for number in range(10_000)])
    assert made["a"] == list(range(9999, -1, -1))


def test_items_at_the_end_of_a_long_list_shift_nothing() -> None:
    patch = [{"op": "add", "path": "/a/-", "value": 1}, {"op": "remove", "path": "/a/150000"}] * 5000
    assert len(json_patch.apply({"a": [0] * 150_000}, patch)["a"]) == 150_000


def test_the_first_hundred_unknown_members_are_reported() -> None:
    found = json_patch.unknown_fields([{f"x{number}": 1 for number in range(1000)}])
    assert len(found) == 100
    assert found[0] == 'json patch unknown field "[0].x0"'
