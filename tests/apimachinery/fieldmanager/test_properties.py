"""What holds after any sequence of applies and updates by several managers."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from clusterregistry.apimachinery.fieldmanager import managed_fields
from clusterregistry.apimachinery.fieldmanager.compare import Comparison, compare
from clusterregistry.apimachinery.fieldmanager.errors import ApplyError, ConflictsError, InvalidConfigurationError
from clusterregistry.apimachinery.fieldmanager.field_set import (
    Fields,
    below,
    compile_reconcile,
    difference,
    intersection,
    is_atomic,
    is_member,
    parse,
    paths,
    union,
    with_structs,
)
from clusterregistry.apimachinery.fieldmanager.managed_fields import MOST_UPDATERS
from clusterregistry.apimachinery.fieldmanager.merge import is_settled, settled
from clusterregistry.apimachinery.fieldmanager.path_element import identified
from clusterregistry.apimachinery.fieldmanager.to_field_set import to_field_set
from clusterregistry.apimachinery.fieldmanager.validate import compile_plainness, problems_text
from clusterregistry.apimachinery.patch import merge_patch
from clusterregistry.apimachinery.schema.schemas import Array, Map, Object, Schema
from tests.apimachinery.codecs.wire_values import SMALL_VALUES
from tests.apimachinery.fieldmanager.schemas import (
    API_VERSION,
    KIND,
    SCHEMA,
    STATUS_RESETS,
    Clock,
    entries,
    field_manager,
    fields_of,
    thing,
    without_managed_fields,
)

SEQUENCES = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""Whole histories are large, and a busy machine is no reason to fail."""

LONG = settings(SEQUENCES, max_examples=25, phases=(Phase.explicit, Phase.reuse, Phase.generate))
"""Without shrinking: to make a long sequence shorter takes minutes."""

Wire = dict[str, Any]
Node = frozenset[tuple[str, ...]]

# Objects, with few names and values so that managers meet

TEXT = st.sampled_from("xy")


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Wire]:
    """A struct with one of the fields at least."""
    return st.fixed_dictionaries({}, optional=fields).filter(bool)


def unique(items: st.SearchStrategy[Any], *keys: str) -> st.SearchStrategy[list[Any]]:
    def identity(item: Any) -> Any:
        return tuple(item.get(key, "TCP") for key in keys) if keys else item

    return st.lists(items, min_size=1, max_size=3, unique_by=identity)


STRUCT = some(a=TEXT, b=TEXT, deep=some(c=TEXT))
ITEM = st.fixed_dictionaries(
    {"name": st.sampled_from("abc")},
    optional={"value": TEXT, "tags": unique(TEXT), "inner": some(a=TEXT, b=TEXT)},
)
PORT = st.fixed_dictionaries(
    {"port": st.sampled_from([1, 10])}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "note": TEXT}
)
SPEC = some(
    text=TEXT,
    number=st.integers(0, 1),
    flag=st.booleans(),
    either=st.sampled_from([1, "1"]),
    struct=STRUCT,
    atomicStruct=st.dictionaries(st.sampled_from("ab"), TEXT),
    map=st.dictionaries(st.sampled_from("pq"), TEXT, min_size=1),
    atomicMap=st.dictionaries(st.sampled_from("pq"), TEXT),
    structs=st.dictionaries(st.sampled_from("pq"), some(a=TEXT, b=TEXT), min_size=1),
    list=st.lists(TEXT, max_size=2),
    set=unique(st.sampled_from("abc")),
    items=unique(ITEM, "name"),
    ports=unique(PORT, "port", "protocol"),
)
STATUS = some(
    phase=TEXT,
    conditions=unique(st.fixed_dictionaries({"type": st.sampled_from("ab")}, optional={"status": TEXT}), "type"),
)
REFERENCE = st.builds(
    lambda uid, name: {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}, st.sampled_from("uv"), TEXT
)
METADATA = st.fixed_dictionaries(
    {"name": st.just("thing")},
    optional={
        "labels": st.dictionaries(st.sampled_from("lm"), TEXT, min_size=1),
        "finalizers": unique(st.sampled_from(["f/a", "f/b"])),
        "ownerReferences": unique(REFERENCE, "uid"),
    },
)


def things(
    metadata: st.SearchStrategy[Any] = METADATA,
    spec: st.SearchStrategy[Any] = SPEC,
    status: st.SearchStrategy[Any] = STATUS,
) -> st.SearchStrategy[Wire]:
    common = {"apiVersion": st.just(API_VERSION), "kind": st.just(KIND), "metadata": metadata}
    return st.fixed_dictionaries(common, optional={"spec": spec, "status": status})


THINGS = things()


class Step(NamedTuple):
    """One write: an apply, a replacement or a merge patch, of the object or of its status."""

    kind: str
    manager: str
    force: bool
    subresource: str
    obj: Wire


def steps(objects: st.SearchStrategy[Wire] = THINGS, *, most: int = 8) -> st.SearchStrategy[list[Step]]:
    one = st.builds(
        Step,
        kind=st.sampled_from(["apply", "apply", "replace", "merge"]),
        manager=st.sampled_from("abc"),
        force=st.booleans(),
        subresource=st.sampled_from(["", "", "", "status"]),
        obj=objects,
    )
    return st.lists(one, min_size=1, max_size=most)


class World:
    """One object and what has been applied to it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.owners = {name: field_manager(self.clock, subresource=name) for name in ("", "status")}
        self.live: Wire | None = None
        self.applied: dict[tuple[str, str], Wire] = {}

    def take(self, step: Step) -> Wire | None:
        """The object after a step, None when it was refused. Checks that nothing given is changed."""
        self.clock.advance()
        subresource = step.subresource if self.live else ""
        given_ones = copy.deepcopy((self.live, step.obj))
        try:
            after = self._written(step, subresource)
        except (ConflictsError, InvalidConfigurationError):
            return None
        finally:
            assert (self.live, step.obj) == given_ones
        self.live = after
        if step.kind == "apply":
            self.applied[step.manager, subresource] = step.obj
        return after

    def _written(self, step: Step, subresource: str) -> Wire:
        owner = self.owners[subresource]
        if step.kind == "apply":
            applied = owner.apply(self.live, step.obj, manager=step.manager, force=step.force)
            return self._reset(applied, subresource)
        obj = copy.deepcopy(step.obj)
        if step.kind == "merge" and self.live:
            obj = copy.deepcopy(merge_patch.apply(self.live, obj))
        obj = self._reset(obj, subresource)
        owner.record_update(self.live, obj, manager=step.manager)
        return obj

    def _reset(self, obj: Wire, subresource: str) -> Wire:
        """As strategies do: what cannot be written through an endpoint is as it was."""
        live = copy.deepcopy(self.live or {})
        if not subresource:
            kept = {name: value for name, value in obj.items() if name != "status"}
            return kept | ({"status": live["status"]} if "status" in live else {})
        kept = {name: value for name, value in live.items() if name != "status"}
        metadata = without_managed_fields(live)["metadata"]
        if "managedFields" in obj["metadata"]:
            metadata = {**metadata, "managedFields": obj["metadata"]["managedFields"]}
        return kept | {"metadata": metadata} | ({"status": obj["status"]} if "status" in obj else {})


def history(sequence: list[Step]) -> Iterator[tuple[World, Step, Wire | None, Wire | None]]:
    """Each step with the object before and after it."""
    world = World()
    for step in sequence:
        before = world.live
        yield world, step, before, world.take(step)


def visible(obj: Wire, subresource: str = "") -> Wire:
    """What can be owned through an endpoint."""
    if subresource:
        return {"status": obj["status"]} if "status" in obj else {}
    metadata = {name: value for name, value in obj["metadata"].items() if name not in ("name", "managedFields")}
    parts = {"metadata": metadata, "spec": obj.get("spec")}
    return {name: part for name, part in parts.items() if part}


def changes(before: Wire | None, after: Wire, subresource: str) -> Comparison:
    return compare(SCHEMA, visible(before, subresource) if before else {}, visible(after, subresource))


def own_fields(obj: Wire, manager: str, operation: str, subresource: str) -> Fields:
    wanted = (manager, operation, subresource)
    found = [
        each for each in entries(obj) if (each["manager"], each["operation"], each.get("subresource", "")) == wanted
    ]
    return found[0]["fieldsV1"] if found else {}


def all_owned(obj: Wire) -> Fields:
    everything: Fields = {}
    for entry in entries(obj):
        everything = union(everything, entry["fieldsV1"])
    return everything


# Sequences


@SEQUENCES
@given(steps())
def test_entries_are_in_order_and_in_their_one_form(sequence: list[Step]) -> None:
    for _, _, _, after in history(sequence):
        if after is None:
            continue
        found = entries(after)
        for entry in found:
            fields = entry["fieldsV1"]
            assert fields
            assert parse(fields) == fields
            assert in_normal_form(fields)
        assert json.loads(json.dumps(found)) == found
        assert managed_fields.to_stored(managed_fields.from_client(found)) == found
        assert managed_fields.to_stored(found[::-1]) == found


@LONG
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.dictionaries(st.sampled_from("pqrs"), TEXT, min_size=1, max_size=2)),
        min_size=11,
        max_size=20,
    )
)
def test_there_are_never_more_than_ten_updaters_and_nothing_is_lost_by_it(writes: list[tuple[int, Wire]]) -> None:
    world = World()
    for number, values in writes:
        step = Step("merge", f"m{number}", force=False, subresource="", obj=thing({"map": values}))
        after = world.take(step)
        assert after is not None
        assert len(entries(after)) <= MOST_UPDATERS
        assert difference(to_field_set(SCHEMA, visible(after)), all_owned(after)) == {}


@SEQUENCES
@given(steps())
def test_an_applier_owns_exactly_what_it_applied(sequence: list[Step]) -> None:
    for world, step, _, after in history(sequence):
        if after is not None and step.kind == "apply":
            subresource = step.subresource if (step.manager, step.subresource) in world.applied else ""
            if world.applied.get((step.manager, subresource)) is step.obj:
                claimed = to_field_set(SCHEMA, visible(step.obj, subresource))
                assert own_fields(after, step.manager, "Apply", subresource) == claimed


@SEQUENCES
@given(steps())
def test_what_was_applied_and_still_has_its_value_is_owned_by_somebody(sequence: list[Step]) -> None:
    for world, _, _, after in history(sequence):
        if after is None:
            continue
        if not entries(after):
            # It is not tracked until somebody applies again.
            world.applied.clear()
        for (_, subresource), configuration in world.applied.items():
            wanted = visible(configuration, subresource)
            differing = compare(SCHEMA, wanted, visible(after, subresource))
            unchanged = difference(difference(to_field_set(SCHEMA, wanted), differing.gained), differing.removed)
            assert difference(unchanged, all_owned(after)) == {}


@SEQUENCES
@given(steps(), THINGS, st.booleans())
def test_applying_the_same_twice_changes_nothing(sequence: list[Step], configuration: Wire, force: bool) -> None:  # noqa: FBT001
    world = World()
    for step in sequence:
        world.take(step)
    configuration = without_status(configuration)
    once = world.take(Step("apply", "a", force=force, subresource="", obj=configuration))
    # Where nobody owns anything any more, the next apply starts afresh.
    assume(once is not None and entries(once))
    again = world.take(Step("apply", "a", force=False, subresource="", obj=configuration))
    assert again == once


@SEQUENCES
@given(steps(), THINGS, THINGS)
def test_applies_of_newcomers_commute(sequence: list[Step], one: Wire, other: Wire) -> None:
    world = World()
    for step in sequence:
        world.take(step)
    one, other = without_status(one), without_status(other)
    first = applied_in_turn(world, ("d", one), ("e", other))
    second = applied_in_turn(world, ("e", other), ("d", one))
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert unordered(without_managed_fields(first)) == unordered(without_managed_fields(second))
        for manager in "de":
            assert fields_of(first, manager) == fields_of(second, manager)
        assert {json.dumps(timeless(each), sort_keys=True) for each in entries(first)} == {
            json.dumps(timeless(each), sort_keys=True) for each in entries(second)
        }


@SEQUENCES
@given(steps())
def test_nobody_else_owns_what_a_write_has_changed(sequence: list[Step]) -> None:
    for _, step, before, after in history(sequence):
        if after is None or not (before and entries(before)):
            continue
        subresource = step.subresource
        operation = "Apply" if step.kind == "apply" else "Update"
        gained, removed = changes(before, after, subresource)
        for entry in entries(after):
            if (entry["manager"], entry["operation"], entry.get("subresource", "")) == (
                step.manager,
                operation,
                subresource,
            ):
                continue
            assert intersection(entry["fieldsV1"], gained) == {}
            if step.kind != "apply":  # what pruning leaves empty keeps its owners, though it is not stored
                assert intersection(entry["fieldsV1"], difference(removed, gained)) == {}


@SEQUENCES
@given(steps())
def test_an_update_owns_what_it_has_changed(sequence: list[Step]) -> None:
    for _, step, before, after in history(sequence):
        if after is None or step.kind == "apply" or (before and not entries(before)):
            continue
        subresource = step.subresource if before else ""
        gained = difference(changes(before, after, subresource).gained, {"f:metadata": {}})
        assert difference(gained, own_fields(after, step.manager, "Update", subresource)) == {}


@SEQUENCES
@given(steps())
def test_what_is_written_through_one_endpoint_leaves_the_fields_of_the_other(sequence: list[Step]) -> None:
    for _, step, before, after in history(sequence):
        if after is None or before is None:
            continue
        hidden = STATUS_RESETS if step.subresource else {"status"}
        for entry in entries(after):
            if entry.get("subresource", "") == step.subresource and entry["manager"] == step.manager:
                assert not {element for element in entry["fieldsV1"] if element[2:] in hidden}


@SEQUENCES
@given(steps())
def test_a_refused_apply_would_have_changed_what_others_own(sequence: list[Step]) -> None:
    for world, step, before, after in history(sequence):
        if after is not None or step.kind != "apply" or before is None:
            continue
        owner = world.owners[step.subresource]
        forced = owner.apply(before, step.obj, manager=step.manager, force=True)
        gained = changes(before, forced, step.subresource).gained
        others = [
            each["fieldsV1"]
            for each in entries(before)
            if (each["manager"], each["operation"], each.get("subresource", ""))
            != (step.manager, "Apply", step.subresource)
        ]
        assert not entries(before) or any(intersection(fields, gained) for fields in others)


def odd(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The same with nulls, empties and things that do not belong there."""
    return (
        strategy
        | st.none()
        | st.just({})
        | st.dictionaries(
            st.sampled_from(
                ["text", "struct", "items", "set", "map", "labels", "finalizers", "name", "numbers", "list"]
            ),
            SMALL_VALUES
            | st.lists(st.none() | ITEM | TEXT | st.just({"name": None}), max_size=3)
            | st.floats(0, 1e300),
            max_size=3,
        )
    )


@SEQUENCES
@given(steps(things(odd(METADATA), odd(SPEC), odd(STATUS)), most=5))
def test_whatever_is_applied_only_apply_errors_are_raised_and_the_rest_can_be_stored(sequence: list[Step]) -> None:
    world = World()
    for step in sequence:
        after = world.take(step._replace(kind="apply"))
        if after is not None:
            json.dumps(after, allow_nan=False)
            assert all(in_normal_form(each["fieldsV1"]) for each in entries(after))


@SEQUENCES
@given(steps(things(METADATA, odd(SPEC), odd(STATUS)), most=3))
def test_whatever_is_applied_over_and_over_changes_no_more_than_the_time(sequence: list[Step]) -> None:
    """From the second time on: an empty list that claims nothing may come back beside what was pruned."""
    world = World()
    for step in sequence:
        again = step._replace(kind="apply", subresource="", force=True)
        if world.take(again) is not None:
            second, third = world.take(again), world.take(again)
            assert second is not None
            assert third is not None
            assert without_managed_fields(third) == without_managed_fields(second)
            assert sorted(map(repr, map(timeless, entries(third)))) == sorted(map(repr, map(timeless, entries(second))))


@settings(max_examples=300)
@given(things(METADATA | odd(METADATA), SPEC | odd(SPEC), STATUS | odd(STATUS)))
def test_what_is_plain_has_no_problems_and_nothing_to_settle(configuration: Wire) -> None:
    if compile_plainness(SCHEMA)(configuration):
        assert problems_text(SCHEMA, configuration) == ""
        assert is_settled(configuration)
        assert repr(settled(SCHEMA, configuration)) == repr(configuration)


def without_status(obj: Wire) -> Wire:
    """What is applied in vain counts as a change until the strategy has reset it."""
    return {name: value for name, value in obj.items() if name != "status"}


def applied_in_turn(world: World, *configurations: tuple[str, Wire]) -> Wire | None:
    obj = world.live
    try:
        for manager, configuration in configurations:
            obj = world.owners[""].apply(obj, configuration, manager=manager, force=False)
    except ApplyError:
        return None
    return obj


def timeless(entry: Wire) -> Wire:
    return {name: value for name, value in entry.items() if name != "time"}


def unordered(value: Any) -> Any:
    """With the items of lists sorted."""
    if isinstance(value, dict):
        return {name: unordered(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted((unordered(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


def in_normal_form(node: Fields, *, top: bool = True) -> bool:
    if "." in node and (top or len(node) == 1 or node["."] != {}):
        return False
    return all(in_normal_form(below, top=False) for element, below in node.items() if element != ".")


# Sets of fields against sets of paths

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"n":1}', 'v:"x"', "i:0"])
MODELS = st.frozensets(st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple), max_size=8)


def tree(model: Node) -> Fields:
    """The set that has these paths as members, in its one form."""
    heads = sorted({path[0] for path in model})
    made: Fields = {}
    for head in heads:
        rests = frozenset(path[1:] for path in model if path[0] == head and len(path) > 1)
        node = tree(rests)
        made[head] = {".": {}, **node} if (head,) in model and node else node
    return made


def members(fields: Fields, above: tuple[str, ...] = ()) -> Node:
    found: set[tuple[str, ...]] = set()
    for element, node in fields.items():
        if element != ".":
            path = (*above, element)
            found |= {path} if is_member(node) else set()
            found |= members(node, path)
    return frozenset(found)


@given(MODELS)
def test_a_set_is_known_by_its_members(model: Node) -> None:
    fields = tree(model)
    assert members(fields) == model
    assert parse(fields) == fields
    assert len(list(paths(fields))) == len(model)


@settings(max_examples=200)
@given(MODELS, MODELS)
def test_operations_on_sets_are_those_on_their_members(one: Node, other: Node) -> None:
    left, right = tree(one), tree(other)
    before = copy.deepcopy((left, right))
    assert union(left, right) == tree(one | other)
    assert difference(left, right) == tree(one - other)
    assert intersection(left, right) == tree(one & other)
    assert (left, right) == before


@given(MODELS, MODELS, MODELS)
def test_operations_on_sets_obey_their_laws(one: Node, other: Node, third: Node) -> None:
    a, b, c = tree(one), tree(other), tree(third)
    assert union(a, union(b, c)) == union(union(a, b), c)
    assert intersection(a, union(b, c)) == union(intersection(a, b), intersection(a, c))
    assert difference(a, union(b, c)) == difference(difference(a, b), c)
    assert union(difference(a, b), intersection(a, b)) == a


@given(MODELS, MODELS)
def test_what_changes_nothing_gives_back_the_operand(one: Node, other: Node) -> None:
    assume(one)
    fields = tree(one)
    assert union(fields, tree(one & other)) is fields
    assert difference(fields, tree(other - one)) is fields


@settings(max_examples=60)
@given(SPEC)
def test_what_is_owned_fits_its_schema_and_structs_are_added_once(spec: Wire) -> None:
    fields = to_field_set(SCHEMA, {"spec": spec})
    fit = compile_reconcile(SCHEMA)
    assert fit is not None
    assert fit(fields) is fields
    extended = with_structs(fields, SCHEMA)
    assert with_structs(extended, SCHEMA) == extended
    assert difference(fields, extended) == {}


@settings(max_examples=100)
@given(SPEC, SPEC)
def test_comparing_backwards_swaps_what_came_and_what_went(one: Wire, other: Wire) -> None:
    there, back = (
        compare(SCHEMA, {"spec": one}, {"spec": other}),
        compare(SCHEMA, {"spec": other}, {"spec": one}),
    )
    assert union(there.gained, there.removed) == union(back.gained, back.removed)
    assert difference(there.removed, back.gained) == {}
    assert difference(back.removed, there.gained) == {}


# Changes against those of a model: what each object has by its paths


def model(schema: Schema | None, value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """All that can be owned of a value, with the values of what has no parts; others are there for themselves."""
    parts = owned_parts(schema, value)
    found: dict[tuple[str, ...], Any] = {path: value if not parts else ...}
    for element, (inner, part) in parts.items():
        found |= model(inner, part, (*path, element))
    return found


def owned_parts(schema: Schema | None, value: Any) -> dict[str, tuple[Schema | None, Any]]:
    if is_atomic(schema):
        return {}
    if isinstance(schema, Array) and isinstance(value, list):
        return {element: (schema.items, item) for element, item in identified(schema, value)}
    if isinstance(schema, Object | Map) and isinstance(value, dict):
        return {f"f:{name}": (below(schema, f"f:{name}"), part) for name, part in value.items()}
    return {}


@settings(max_examples=300)
@given(THINGS, THINGS, st.sampled_from(["struct", "map", "items", "set"]), st.sampled_from([None, {}, [], "x"]))
def test_changes_are_those_of_all_that_can_be_owned(one: Wire, other: Wire, name: str, odd_one: Any) -> None:
    if "spec" in one:
        one["spec"][name] = odd_one
    for old, new in ((one, other), (other, one)):
        before, after = model(SCHEMA, old), model(SCHEMA, new)
        found = compare(SCHEMA, old, new)
        # What has or had parts is no change by itself: its parts are.
        whole = {path for path in before.keys() & after.keys() if ... not in (before[path], after[path])}
        different = {path for path in whole if before[path] != after[path]}
        assert members(found.gained) == {*(after.keys() - before.keys()), *different}
        assert members(found.removed) == before.keys() - after.keys()
