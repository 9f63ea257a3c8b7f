"""Resources that exist only here: what discovery says must follow from any definition."""

from __future__ import annotations

from typing import cast

from clusterregistry.apimachinery.schema.schemas import Array, Boolean, Integer, IntOrString, Map, Object, String
from clusterregistry.apiserver.discovery.endpoints import Discovery
from clusterregistry.apiserver.discovery.operations import Served
from clusterregistry.apiserver.registry.resource import Resource, Subresource, Version
from clusterregistry.apiserver.registry.strategy import Strategy

GROUP = "shop.example.com"

# discovery asks whether there is a strategy and never what it does
STRATEGY = cast("Strategy", object())

_PART = Object(
    description="A part.",
    fields={
        "colour": String(description="The colour.", enum=("red", "green")),
        "serialNo": String(max_length=20),
    },
    required=("serialNo",),
    old_spellings={"serialNumber": "serialNo"},
)

_SPEC = Object(
    description="What is wanted.",
    fields={
        "parts": Array(items=_PART, description="The parts."),
        "tags": Array(items=String(), list_type="set"),
        "key": String(format="byte"),
        "size": Integer(format="int32", minimum=0, maximum=9),
        "sold": Boolean(),
        "options": Map(values=String()),
    },
)

_STATUS = Object(
    fields={
        "conditions": Array(
            items=Object(
                fields={"type": String(), "since": String(format="date-time")},
                required=("type",),
            ),
            list_type="map",
            map_keys=("type",),
        ),
        "amounts": Map(values=IntOrString()),
    }
)

WIDGET_SCHEMA = Object(description="A thing for sale.", fields={"spec": _SPEC, "status": _STATUS})

WIDGETS = Resource(
    group=GROUP,
    kind="Widget",
    plural="widgets",
    singular="widget",
    versions=[
        Version(name="v1", schema=WIDGET_SCHEMA, columns=[]),
        Version(name="v1beta1", schema=WIDGET_SCHEMA, columns=[]),
    ],
    storage_version="v1beta1",
    strategy=STRATEGY,
    subresources={"status": Subresource(strategy=STRATEGY)},
    short_names=["wd"],
    categories=["all"],
)

PRICES = Resource(
    group=GROUP,
    kind="Price",
    plural="prices",
    singular="price",
    versions=[Version(name="v1beta1", schema=Object(fields={"amount": Integer()}), columns=[])],
    storage_version="v1beta1",
    strategy=STRATEGY,
)

CARS = Resource(
    group="cars.example.org",
    kind="Car",
    plural="cars",
    singular="car",
    versions=[Version(name="v2", schema=Object(fields={}), columns=[])],
    storage_version="v2",
    strategy=STRATEGY,
)

NOTES = Resource(
    group="",
    kind="Note",
    plural="notes",
    singular="note",
    versions=[
        Version(name="v1", schema=Object(fields={"text": String()}), columns=[]),
        Version(name="v1", group="notes.example.org", schema=Object(fields={"text": String()}), columns=[]),
    ],
    storage_version="v1",
    strategy=STRATEGY,
    subresources={"status": Subresource(strategy=STRATEGY, verbs=("update",))},
    verbs=("get", "list", "create", "watch"),
    namespaced=True,
    native=True,
)
"""A namespaced kind of the core group and of another one."""

RESOURCES = (WIDGETS, PRICES, CARS)


def discovery(*, enable_watch: bool = True) -> Discovery:
    return Discovery(
        Served(resources=RESOURCES, enable_watch=enable_watch),
        server_address="127.0.0.1:8443",
        title="Shop",
        version="v1.2.3",
    )
