"""What is published of a kind that is really served, against the definition that was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from clusterregistry.discovery.contents import Served
from clusterregistry.discovery.openapi_v3 import OpenAPIV3
from clusterregistry.registry.cluster import cluster_resource

RECORDED = Path(__file__).parents[1] / "conformance" / "cluster-crd.yaml"

# prose differs on purpose; rules stand in our validation; custom resources have no strategic merge patch
NOT_COMPARED = ("x-kubernetes-validations", "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key")


def shape(schema: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "properties":
            out[keyword] = {name: shape(inner) for name, inner in value.items()}
        elif keyword in ("items", "additionalProperties"):
            out[keyword] = shape(value)
        elif keyword != "description" and keyword not in NOT_COMPARED:
            out[keyword] = value
    return out


def test_spec_and_status_are_published_as_recorded() -> None:
    recorded = yaml.safe_load(RECORDED.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    openapi = OpenAPIV3(Served(resources=[cluster_resource("warn")]), title="Registry", version="v1")
    document = openapi.document("apis/clusterregistry.k8s.io/v1alpha1")
    assert document is not None
    schemas = json.loads(document.body)["components"]["schemas"]
    published = schemas["io.k8s.clusterregistry.v1alpha1.Cluster"]["properties"]
    assert set(published) == {"apiVersion", "kind", "metadata", "spec", "status"}
    for part in ("spec", "status"):
        assert shape(published[part]) == shape(recorded[part])
