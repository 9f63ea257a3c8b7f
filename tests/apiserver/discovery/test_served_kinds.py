"""What is published of a kind that is really served, against the definition that was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from clusterregistry.apiserver.discovery.openapi_v3 import OpenAPIV3
from clusterregistry.apiserver.discovery.operations import Served
from clusterregistry.apiserver.registry.rbac.resources import cluster_role_binding_resource, cluster_role_resource
from clusterregistry.registry.cluster import cluster_resource

RBAC_SCHEMAS = Path(__file__).parent / "rbac_schemas.json"
"""What kube-apiserver v1.36.4 publishes of roles and bindings, without the prose."""

RECORDED = Path(__file__).parents[2] / "conformance" / "cluster-crd.yaml"

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
    assert {"state", "observedAt"} == published["status"]["properties"].keys() - recorded["status"]["properties"].keys()
    del published["status"]["properties"]["state"], published["status"]["properties"]["observedAt"]
    for part in ("spec", "status"):
        assert shape(published[part]) == shape(recorded[part])


def comparable(schema: Any) -> Any:
    """Without the prose; a reference is the same whether it stands alone or, to have a description, in an allOf."""
    if not isinstance(schema, dict):
        return sorted(schema) if isinstance(schema, list) and all(isinstance(each, str) for each in schema) else schema
    out = {key: comparable(value) for key, value in schema.items() if key != "description"}
    return out["allOf"][0] if out.keys() == {"allOf"} else out


def rbac_schemas() -> dict[str, Any]:
    resources = [cluster_role_resource(), cluster_role_binding_resource()]
    document = OpenAPIV3(Served(resources=resources), title="Registry", version="v1").document(
        "apis/rbac.authorization.k8s.io/v1"
    )
    assert document is not None
    schemas: dict[str, Any] = json.loads(document.body)["components"]["schemas"]
    return schemas


def test_roles_and_bindings_are_published_as_recorded() -> None:
    """Down to the names of the structs below them, which `kubectl explain` shows."""
    published = rbac_schemas()
    for name, recorded in json.loads(RBAC_SCHEMAS.read_text()).items():
        assert comparable(published[name]) == comparable(recorded), name


def test_each_struct_is_described_once() -> None:
    """At the field where there is one, else at the struct: `kubectl explain` shows both, one after the other."""
    schemas = rbac_schemas()
    role = schemas["io.k8s.api.rbac.v1.ClusterRole"]["properties"]
    assert role["aggregationRule"]["description"].startswith("AggregationRule says")
    assert "description" not in schemas["io.k8s.api.rbac.v1.AggregationRule"]
    assert role["rules"]["description"].startswith("Rules hold")
    assert role["rules"]["items"] == {"$ref": "#/components/schemas/io.k8s.api.rbac.v1.PolicyRule"}
    assert schemas["io.k8s.api.rbac.v1.PolicyRule"]["description"].startswith("PolicyRule allows")
