"""Sets of fields as they have to be under a schema: of what changes as a whole, no parts are owned.

It matters when a schema has changed since a set was written, or when a client wrote it. As every write has to make
sure of it, schemas are compiled to functions that look only where something might not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterregistry.apis.meta.schemas import Array, Map, Object, Schema
from clusterregistry.apply.elements import FIELD
from clusterregistry.apply.field_sets import LEAF, Fields, is_atomic

Fit = Callable[[Fields], Fields]
"""Takes a set, or the node of an element, and gives it back as it has to be: the very same where it fits."""


def compile_fitting(schema: Schema) -> Fit | None:
    """None where everything fits."""
    if is_atomic(schema):
        return lambda _fields: LEAF
    match schema:
        case Object():
            fits = {FIELD + name: fit for name, field in schema.fields.items() if (fit := compile_fitting(field))}
            return _each(fits.get) if fits else None
        case Map(values=values):
            below = compile_fitting(values)
            return _each(lambda element: below if element.startswith(FIELD) else None) if below else None
        case Array(items=items):
            below = compile_fitting(items)
            return _each(lambda element: None if element.startswith(FIELD) else below) if below else None
        case _:
            return None


def _each(fit_of: Callable[[str], Fit | None]) -> Fit:
    """A function that makes all that is in a set fit by what ``fit_of`` has for its elements."""

    def fit_all(fields: Fields) -> Fields:
        fitted: Fields | None = None
        for element, node in fields.items():
            if not node or (fit := fit_of(element)) is None:
                continue
            proper: Any = fit(node)
            if proper is not node:
                fitted = dict(fields) if fitted is None else fitted
                fitted[element] = proper
        return fields if fitted is None else fitted

    return fit_all
