"""Clusters of any content in each version, for properties."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from clusterregistry.api.clusterregistry.v1alpha1 import types as v1alpha1
from clusterregistry.api.clusterregistry.v1beta1 import types as v1beta1
from clusterregistry.apimachinery.schema import schemas

Object = dict[str, Any]
Values = st.SearchStrategy[Any]

TIMES = st.sampled_from(["2024-01-02T03:04:05Z", "2026-11-18T00:00:00Z"])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
NUMBERS = st.integers(0, 2**63 - 1) | st.integers(0, 3)
DEGREES = st.integers(-90, 90) | st.floats(-90, 90, allow_nan=False) | st.sampled_from(["59.3293", "-0"])


def values_of(schema: schemas.Schema) -> Values:  # noqa: C901 - one case for each type
    """Values that a schema allows; all fields that are not required may be absent, and structs and lists empty."""
    match schema:
        case schemas.String(enum=enum) if enum:
            return st.sampled_from(enum)
        case schemas.String(format="date-time"):
            return TIMES
        case schemas.String(format="byte"):
            return st.just("c29tZSBhdXRob3JpdHk=")
        case schemas.Integer(format="int32"):
            return st.integers(0, 2**31 - 1)
        case schemas.Integer():
            return NUMBERS
        case schemas.IntOrString():
            return NUMBERS | TEXTS
        case schemas.NumberOrString():
            return DEGREES
        case schemas.Map(values=values):
            return st.dictionaries(TEXTS, values_of(values), max_size=2)
        case schemas.Array(items=items, list_type="map", map_keys=(key,)):
            return st.lists(values_of(items), max_size=3, unique_by=lambda item: item[key])
        case schemas.Array(items=items):
            return st.lists(values_of(items), max_size=3)
        case schemas.Object(fields=fields, required=required):
            known = {name: values_of(field) for name, field in fields.items()}
            given = {name: known.pop(name) for name in required}
            return st.fixed_dictionaries(given, optional=known)
        case _:
            return TEXTS


ANNOTATIONS = st.dictionaries(
    st.sampled_from(["note", "clusterregistry.k8s.io/protected"]), TEXTS, min_size=1, max_size=2
)
METADATA = st.fixed_dictionaries(
    {"name": st.just("a"), "uid": st.just("u")},
    optional={"annotations": ANNOTATIONS, "labels": st.just({"env": "prod"}), "generation": st.integers(1, 3)},
)


def _clusters(version: str, schema: schemas.Object) -> st.SearchStrategy[Object]:
    given = {
        "apiVersion": st.just(f"clusterregistry.k8s.io/{version}"),
        "kind": st.just("Cluster"),
        "metadata": METADATA,
    }
    parts = {name: values_of(part) for name, part in schema.fields.items()}
    return st.fixed_dictionaries(given, optional=parts)


ALPHAS = _clusters("v1alpha1", v1alpha1.CLUSTER)
BETAS = _clusters("v1beta1", v1beta1.STORED_CLUSTER)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)


def _odd(schema: schemas.Schema) -> Values:
    """Values of which any part may be of any type."""
    match schema:
        case schemas.Object(fields=fields):
            return JSON | st.fixed_dictionaries({}, optional={name: _odd(field) for name, field in fields.items()})
        case schemas.Array(items=items):
            return JSON | st.lists(_odd(items), max_size=2)
        case schemas.Map(values=values):
            return JSON | st.dictionaries(TEXTS, _odd(values), max_size=2)
        case _:
            return JSON | values_of(schema)


ODD_BETAS = st.fixed_dictionaries(
    {"apiVersion": st.just("clusterregistry.k8s.io/v1beta1"), "kind": st.just("Cluster"), "metadata": METADATA},
    optional={name: _odd(part) for name, part in v1beta1.CLUSTER.fields.items()},
)
"""Clusters as a client may send them."""
