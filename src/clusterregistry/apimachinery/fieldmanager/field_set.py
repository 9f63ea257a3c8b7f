"""Field sets, in the form of ``fieldsV1``: a tree of path elements.

An element is a member of the set if its node is empty or has the element ``.``; the other elements of the node are
the fields below it. The node of a whole set has no ``.``, and an empty one is the empty set. Sets are immutable, so
that they can share parts. A union or difference that equals its first operand returns that very operand, so that
``is`` detects a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import is_
from typing import Any

from clusterregistry.apimachinery.fieldmanager import path_element
from clusterregistry.apimachinery.fieldmanager.path_element import FIELD, MalformedElementError
from clusterregistry.apimachinery.schema.schemas import Array, Map, Object, Schema

Fields = dict[str, Any]
"""A set, or the node of one element in it. Recursive, which mypy cannot express without many casts."""

SELF = "."
LEAF: Fields = {}
"""The node of a member without fields below it."""


Names = Mapping[str, Any]
"""A tree of field names. A name without names below it stands for the whole field. Recursive, as ``Fields`` is."""

CONTAINERS = frozenset((Object, Map, Array))
"""Schemas of values that have parts."""


def is_member(node: Fields) -> bool:
    """Whether an element with this node is a member of the set."""
    return not node or SELF in node


def as_member(below: Fields) -> Fields:
    """The node of a member with these fields below it."""
    return {SELF: LEAF, **below} if below else LEAF


def union(one: Fields, other: Fields) -> Fields:
    if not one:
        return other
    joined: Fields | None = None
    for element, node in other.items():
        mine = one.get(element)
        if mine == node:
            continue
        both = node if mine is None else _joined(mine, node)
        if both is not mine:
            joined = dict(one) if joined is None else joined
            joined[element] = both
    return one if joined is None else joined


def _joined(one: Fields, other: Fields) -> Fields:
    if not one:
        return as_member(other) if other else one
    if not other:
        return one if SELF in one else as_member(one)
    return union(one, other)


def difference(one: Fields, other: Fields) -> Fields:
    """The members of the first set that are not in the second. Children of a removed parent stay."""
    left: Fields | None = None
    for element, taken in other.items():  # usually the small one: the changes of a write
        node = one.get(element)
        if node is None:
            continue
        remaining = _remaining(node, taken)
        if remaining is node:
            continue
        left = dict(one) if left is None else left
        if remaining is None:
            del left[element]
        else:
            left[element] = remaining
    return one if left is None else left


def _remaining(node: Fields, taken: Fields) -> Fields | None:
    """A node without the fields of another; None if nothing is left."""
    if node == taken:
        return None
    if not node:
        return None if SELF in taken else node
    return _normal(difference(node, taken or {SELF: LEAF}))


def intersection(one: Fields, other: Fields) -> Fields:
    common = {}
    for element in one.keys() & other.keys():
        node = _common(one[element], other[element])
        if node is not None:
            common[element] = node
    return common


def _common(one: Fields, other: Fields) -> Fields | None:
    if not one or not other:
        return LEAF if is_member(one) and is_member(other) else None
    return _normal(intersection(one, other))


def _normal(node: Fields) -> Fields | None:
    """A node in its canonical form: empty for a member without fields below it, None for no member at all."""
    if not node:
        return None
    return LEAF if len(node) == 1 and SELF in node else node


def whole_names(names: Names) -> frozenset[str]:
    """The names that stand for whole fields."""
    return frozenset(name for name, below in names.items() if not below)


def paths(fields: Fields, prefix: str = "") -> Iterator[str]:
    """The paths of all members as messages show them, those of a level before those below it."""
    ordered = sorted((element for element in fields if element != SELF), key=path_element.position)
    for element in ordered:
        if is_member(fields[element]):
            yield prefix + path_element.shown(element)
    for element in ordered:
        yield from paths(fields[element], prefix + path_element.shown(element))


def parse(value: Any) -> Fields:
    """Parses a client's set into its canonical form. Raises MalformedElementError.

    Elements of unknown kinds are ignored, as in kube-apiserver.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedElementError("a set of fields must be a map")
    below = {}
    for element, node in value.items():
        name = None if element == SELF else path_element.canonical(element)
        if name is not None:
            below[name] = _parsed_node(node)
    return below


def _parsed_node(node: Any) -> Fields:
    below = parse(node)
    return as_member(below) if isinstance(node, dict) and SELF in node else below


# Along a schema


def below(schema: Schema | None, element: str) -> Schema | None:
    """The schema of the value at a path element; None for an unknown one."""
    is_field = element.startswith(FIELD)
    if type(schema) is Object:
        return schema.fields.get(element[2:]) if is_field else None
    if type(schema) is Map:
        return schema.values if is_field else None
    return schema.items if type(schema) is Array and not is_field else None


def with_structs(fields: Fields, schema: Schema | None) -> Fields:
    """The set with each struct that has members below it as a member too.

    A manager that applies ``spec.a.b`` owns only that leaf, but when it gives the leaf up, ``spec.a`` is pruned too.
    """
    named = schema.fields if isinstance(schema, Object) else {}
    extended = {}
    for element, node in fields.items():
        inner = with_structs(node, below(schema, element)) if node else node
        extended[element] = as_member(inner) if inner and element[2:] in named else inner
    return extended


def is_atomic(schema: Schema | None) -> bool:
    """Whether values of this schema change as a whole, so that their parts have no managers of their own."""
    if type(schema) is Array:
        return schema.list_type == "atomic"
    return schema.atomic if type(schema) is Object or type(schema) is Map else False


# Reconciliation with a schema that has changed since a set was written, or with a set that a client wrote

Fit = Callable[[Fields], Fields]
"""Returns a set, or the node of an element, as the schema requires it: the same object where it fits."""


def compile_reconcile(schema: Schema) -> Fit | None:
    """Compiles a schema to a function that removes the parts of atomic values from a set; None where every set fits.

    Every write calls the function, so it looks only at the fields that might not fit.
    """
    if is_atomic(schema):
        return lambda _fields: LEAF
    match schema:
        case Object():
            fits = {FIELD + name: fit for name, field in schema.fields.items() if (fit := compile_reconcile(field))}
            return _fit_struct(fits) if fits else None
        case Map(values=values):
            below = compile_reconcile(values)
            return _fit_alike(below, is_field=True) if below else None
        case Array(items=items):
            below = compile_reconcile(items)
            return _fit_alike(below, is_field=False) if below else None
        case _:
            return None


def _fit_struct(fits: dict[str, Fit]) -> Fit:
    """Reconciles the few fields of a struct that might not fit."""

    def fit_some(fields: Fields) -> Fields:
        for element, fit in fits.items():
            node = fields.get(element)
            if node and (proper := fit(node)) is not node:
                fields = {**fields, element: proper}
        return fields

    return fit_some


def _fit_alike(fit: Fit, *, is_field: bool) -> Fit:
    """Reconciles every value of a map or item of a list."""

    def fit_all(fields: Fields) -> Fields:
        fitted = {
            element: fit(node) if node and element.startswith(FIELD) is is_field else node
            for element, node in fields.items()
        }
        return fields if all(map(is_, fitted.values(), fields.values())) else fitted

    return fit_all
