"""Strategies for JSON: any value, and values that are shaped like a schema with mistakes in them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from clusterregistry.apimachinery.schema import schemas

scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=20)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


def shaped(schema: schemas.Schema) -> st.SearchStrategy[Any]:
    """Mostly what the schema asks for, sometimes anything."""
    return values | _well_shaped(schema)


def _well_shaped(schema: schemas.Schema) -> st.SearchStrategy[Any]:
    match schema:
        case schemas.Object():
            fields = {name: shaped(field) for name, field in schema.fields.items()}
            known = st.fixed_dictionaries({}, optional=fields)
            return st.builds(lambda a, b: a | b, st.dictionaries(st.text(max_size=5), scalars, max_size=2), known)
        case schemas.Array():
            return st.lists(shaped(schema.items), max_size=3)
        case schemas.Map():
            return st.dictionaries(st.text(max_size=8), shaped(schema.values), max_size=3)
        case schemas.String(enum=(first, *_)):
            return st.just(first) | st.text(max_size=20)
        case schemas.String():
            return st.text(max_size=300)
        case _:
            return scalars
