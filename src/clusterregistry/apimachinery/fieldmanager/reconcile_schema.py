"""Sets of fields as they have to be under a schema: of what changes as a whole, no parts are owned.

It matters when a schema has changed since a set was written, or when a client wrote it. As every write has to make
sure of it, schemas are compiled to functions that look only where something might not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_

from clusterregistry.apimachinery.fieldmanager.field_set import LEAF, Fields, is_atomic
from clusterregistry.apimachinery.fieldmanager.path_element import FIELD
from clusterregistry.apimachinery.schema.schemas import Array, Map, Object, Schema

Fit = Callable[[Fields], Fields]
"""Takes a set, or the node of an element, and gives it back as it has to be: the very same where it fits."""


def compile_reconcile(schema: Schema) -> Fit | None:
    """None where everything fits."""
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
    """A function that makes those fields fit that might not, which are few."""

    def fit_some(fields: Fields) -> Fields:
        for element, fit in fits.items():
            node = fields.get(element)
            if node and (proper := fit(node)) is not node:
                fields = {**fields, element: proper}
        return fields

    return fit_some


def _fit_alike(fit: Fit, *, is_field: bool) -> Fit:
    """A function that makes all fit that a map or list has in it."""

    def fit_all(fields: Fields) -> Fields:
        fitted = {
            element: fit(node) if node and element.startswith(FIELD) is is_field else node
            for element, node in fields.items()
        }
        return fields if all(map(is_, fitted.values(), fields.values())) else fitted

    return fit_all
