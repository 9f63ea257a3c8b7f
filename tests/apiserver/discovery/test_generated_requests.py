"""The document of version 3 is precise enough to make requests from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterregistry.apiserver.discovery.openapi_v3 import OpenAPIV3
from clusterregistry.apiserver.discovery.operations import Served
from tests.apiserver.discovery.examples import RESOURCES

schemathesis = pytest.importorskip("schemathesis")


def loaded() -> Any:
    openapi = OpenAPIV3(Served(resources=RESOURCES), title="Shop", version="v1")
    document = openapi.document("apis/shop.example.com/v1")
    assert document is not None
    schema = schemathesis.openapi.from_dict(json.loads(document.body))
    schema.validate()
    return schema


OPERATIONS = {
    operation.ok().definition.raw["operationId"]: operation.ok() for operation in loaded().get_all_operations()
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_request_can_be_made_for_every_operation(name: str) -> None:
    @settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def makes_a_request(data: st.DataObject) -> None:
        case = data.draw(OPERATIONS[name].as_strategy())
        assert case.method.lower() in ("get", "put", "post", "patch", "delete")
        assert case.formatted_path.startswith("/apis/shop.example.com/v1/")

    makes_a_request()
