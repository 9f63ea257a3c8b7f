"""The schema of a Cluster in v1beta1. What it shares with v1alpha1 is taken from there."""

from __future__ import annotations

from dataclasses import replace

from clusterregistry.api.clusterregistry.v1alpha1 import types as v1alpha1
from clusterregistry.apimachinery.schema.schemas import Array, Integer, Map, NumberOrString, Object, String

_LONGEST_PLACE = 253


def _with_fields(schema: Object, **fields: Array | Object | String) -> Object:
    return replace(schema, fields={**schema.fields, **fields})


def _part(schema: Object, name: str) -> Object:
    part = schema.fields[name]
    assert isinstance(part, Object)
    return part


AUTH_PROVIDER = Object(
    description=v1alpha1.AUTH_PROVIDER.description,
    fields={
        "name": String(description="Name of the provider."),
        "type": String(description="Name of the type of provider."),
        "config": Map(
            description="Config holds what the provider needs to know: pointers to credentials, never credentials.",
            values=String(),
        ),
    },
)

LOCATION = Object(
    description="Location is where the cluster is. Its provider names the regions and zones.",
    fields={
        "provider": String(max_length=_LONGEST_PLACE, description="Who runs the place, such as a cloud."),
        "region": String(max_length=_LONGEST_PLACE, description="Region, as the provider names it."),
        "zone": String(max_length=_LONGEST_PLACE, description="Zone in the region, as the provider names it."),
        "latitude": NumberOrString(description="Latitude in decimal degrees, from -90 (south) to 90 (north)."),
        "longitude": NumberOrString(description="Longitude in decimal degrees, from -180 (west) to 180 (east)."),
    },
)

_ENDPOINTS = _part(v1alpha1.SPEC, "kubernetesApiEndpoints")

SPEC = _with_fields(
    v1alpha1.SPEC,
    kubernetesApiEndpoints=_with_fields(
        _ENDPOINTS,
        serverEndpoints=Array(
            description=_ENDPOINTS.fields["serverEndpoints"].description,
            items=replace(v1alpha1.SERVER_ENDPOINT, old_spellings={}),
        ),
    ),
    authInfo=_with_fields(
        _part(v1alpha1.SPEC, "authInfo"),
        providers=Array(description="Providers are the ways to authenticate to this cluster.", items=AUTH_PROVIDER),
    ),
    location=LOCATION,
)

CONDITION = Object(
    description="Condition is one aspect of the state of the cluster, as in meta/v1.",
    required=("lastTransitionTime", "message", "reason", "status", "type"),
    fields={
        "lastTransitionTime": String(format="date-time", description="When the status last changed."),
        "message": String(max_length=32768, description="The last transition, for people. It may be empty."),
        "observedGeneration": Integer(
            format="int64", minimum=0, description="The metadata.generation that the condition was set upon."
        ),
        "reason": String(max_length=1024, description="The reason for the last transition, in one word."),
        "status": String(enum=("True", "False", "Unknown"), description="Whether the condition holds."),
        "type": String(max_length=316, description="Type of the condition, such as Ready or example.com/Healthy."),
    },
)


def _status(condition: Object) -> Object:
    conditions = Array(
        description="Conditions are the aspects of the state of the cluster, one of each type.",
        items=condition,
        list_type="map",
        map_keys=("type",),
    )
    return _with_fields(v1alpha1.STATUS, conditions=conditions)


def _cluster(status: Object) -> Object:
    return replace(v1alpha1.CLUSTER, fields={"spec": SPEC, "status": status})


CLUSTER = _cluster(_status(CONDITION))

STORED_CLUSTER = _cluster(_status(replace(CONDITION, required=v1alpha1.CONDITION.required)))
"""The schema of objects that may have been written in v1alpha1, whose conditions need no reason, message or time."""
