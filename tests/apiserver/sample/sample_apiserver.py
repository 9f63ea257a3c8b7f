"""A server with two kinds of its own, made of the library alone, as sample-apiserver is of k8s.io/apiserver.

Flunder is namespaced and has two versions, Fischer is root-scoped and has one.
``python -m tests.apiserver.sample.sample_apiserver standalone`` runs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.schema.schemas import Array, Integer, Object, String
from clusterregistry.apiserver.cli.program import server_program
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.options.groups import option_set
from clusterregistry.apiserver.product import Product
from clusterregistry.apiserver.registry.columns import age_column, condition_cell, field_cell, name_column
from clusterregistry.apiserver.registry.resource import Column, Resource, Subresource, Version
from clusterregistry.apiserver.registry.structural_strategy import SpecStrategy, StatusStrategy

GROUP = "wardle.example.com"

_STATUSES = String(enum=("True", "False", "Unknown"))
CONDITION = Object(required=("type", "status"), fields={"type": String(), "status": _STATUSES, "reason": String()})

FLUNDER = Object(
    description="Flunder is a fish with a size.",
    fields={
        "spec": Object(
            description="Spec is what is wanted of the fish.",
            fields={
                "size": String(enum=("Small", "Large"), description="Size of the fish."),
                "weight": Integer(minimum=0, description="Weight in grams."),
                "habitat": String(description="Habitat in which the fish lives."),
            },
        ),
        "status": Object(
            description="Status is what was observed of the fish.",
            fields={"conditions": Array(items=CONDITION, list_type="map", map_keys=("type",))},
        ),
    },
)

FISCHER = Object(
    description="Fischer keeps fish out of the water.",
    fields={
        "spec": Object(
            fields={
                "disallowed": Array(
                    description="Disallowed are the fish that are kept out, one entry for each.",
                    items=Object(required=("flunder",), fields={"flunder": String(), "reason": String()}),
                    list_type="map",
                    map_keys=("flunder",),
                )
            }
        )
    },
)


_OLD_SPEC = Object(fields={"size": String(), "grams": Integer(minimum=0), "habitat": String()})
OLD_FLUNDER = replace(FLUNDER, fields={**FLUNDER.fields, "spec": _OLD_SPEC})
"""In v1alpha1 the weight was called grams."""


def converted(obj: dict[str, Any], *, version: str, names: dict[str, str]) -> dict[str, Any]:
    spec = obj.get("spec")
    renamed = {names.get(name, name): value for name, value in spec.items()} if isinstance(spec, dict) else spec
    return {**obj, "apiVersion": f"{GROUP}/{version}", **({"spec": renamed} if "spec" in obj else {})}


class FlunderStrategy(SpecStrategy):
    """A fish is small by default, and a small fish is light."""

    def set_defaults(self, obj: dict[str, Any]) -> None:
        obj.setdefault("spec", {}).setdefault("size", "Small")

    def validate_object(self, obj: dict[str, Any], _old: dict[str, Any] | None) -> list[FieldError]:
        weight = obj["spec"].get("weight", 0)
        if obj["spec"]["size"] == "Large" or not isinstance(weight, int) or weight <= 1000:
            return []
        return [field_errors.invalid("spec.weight", weight, "a small fish weighs 1000 grams or less")]


def flunder_resource() -> Resource:
    columns = (
        name_column("The name of the fish."),
        Column(name="Size", type="string", cell=field_cell("spec", "size"), description="The size."),
        Column(name="Ready", type="string", cell=condition_cell("Ready"), description="Whether the fish is ready."),
        Column(name="Habitat", type="string", priority=1, cell=field_cell("spec", "habitat"), description="Habitat."),
        age_column("When the fish was created."),
    )
    return Resource(
        group=GROUP,
        kind="Flunder",
        plural="flunders",
        singular="flunder",
        short_names=("fl",),
        namespaced=True,
        versions=(
            Version(name="v1", schema=FLUNDER, columns=columns),
            Version(
                name="v1alpha1",
                schema=OLD_FLUNDER,
                columns=columns,
                to_storage=partial(converted, version="v1", names={"grams": "weight"}),
                from_storage=partial(converted, version="v1alpha1", names={"weight": "grams"}),
            ),
        ),
        storage_version="v1",
        strategy=FlunderStrategy(FLUNDER),
        selectable_fields={"spec.size": lambda obj: str(obj.get("spec", {}).get("size", ""))},
        subresources={"status": Subresource(strategy=StatusStrategy(FLUNDER))},
    )


def fischer_resource() -> Resource:
    return Resource(
        group=GROUP,
        kind="Fischer",
        plural="fischers",
        singular="fischer",
        versions=(Version(name="v1", schema=FISCHER, columns=(name_column("The name."), age_column("The age."))),),
        storage_version="v1",
        strategy=SpecStrategy(FISCHER),
    )


def _resources(_options: CompletedOptions) -> Sequence[Resource]:
    return flunder_resource(), fischer_resource()


PRODUCT = Product(
    options=option_set("sample-apiserver"),
    title="Sample",
    version="1.2.3",
    summary="sample-apiserver keeps fish.",
    example="get flunders",
    resources=_resources,
)

if __name__ == "__main__":
    sys.exit(server_program(PRODUCT).main(sys.argv[1:], os.environ))
