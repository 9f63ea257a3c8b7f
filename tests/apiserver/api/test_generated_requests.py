"""Requests made from our own OpenAPI document: none is answered with a 5xx, all answers are as documented."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.transport import Response

from clusterregistry.apiserver.discovery.openapi_v3 import OpenAPIV3
from clusterregistry.apiserver.discovery.operations import Served
from clusterregistry.apiserver.resource_storage import served_resources
from clusterregistry.registry.product import PRODUCT
from tests.apiserver.api.clients import empty
from tests.apiserver.api.group_objects import SETS, team_set
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import GROUP_VERSION, cluster, path_of
from tests.product import load

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 25


def loaded() -> Any:
    options = load(["--data-dir", str(Path("nowhere").absolute())], {})
    served = Served(resources=served_resources(options, PRODUCT), enable_watch=True)
    document = OpenAPIV3(served, title="Cluster registry", version="v0").document(f"apis/{GROUP_VERSION}")
    assert document is not None
    return schemathesis.openapi.from_dict(json.loads(document.body))


OPERATIONS = {
    operation.ok().definition.raw["operationId"]: operation.ok() for operation in loaded().get_all_operations()
}


def test_the_server_serves_this_document(local: InProcessClient) -> None:
    served = local.get(f"/openapi/v3/apis/{GROUP_VERSION}").expect(200)
    found = {
        operation["operationId"]
        for path in served["paths"].values()
        for method, operation in path.items()
        if method != "parameters"
    }
    assert found == set(OPERATIONS)


def answered(client: InProcessClient, case: Any) -> Response:
    """Sends a generated case through the application and gives the answer as schemathesis wants it."""
    prepared = requests.Request(**case.as_transport_kwargs(base_url="https://registry")).prepare()
    assert prepared.url is not None
    target = prepared.url.removeprefix("https://registry")
    body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body or b""
    assert isinstance(body, bytes)
    headers = [(name, _text(value)) for name, value in prepared.headers.items() if name.lower() != "content-length"]
    headers = [(name, value) for name, value in headers if name.lower() != "authorization"]
    answer = client.exchange(
        prepared.method or "GET", target, headers=[*headers, ("Authorization", "Bearer admintoken")], body=body
    )
    collected: dict[str, list[str]] = {}
    for key, value in answer.headers:
        collected.setdefault(key, []).append(value)
    return Response(answer.status, collected, answer.body, prepared, elapsed=0.0, verify=False)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def bounded(case: Any) -> None:
    """Leaves out what would make a request wait: watches, and versions that are yet to come."""
    query = case.query or {}
    query.pop("watch", None)
    if set(str(query.get("resourceVersion", ""))) <= set(string.digits):
        query.pop("resourceVersion", None)


@pytest.fixture(autouse=True)
def without_sets(local: InProcessClient) -> Iterator[None]:
    """Leaves no sets to the tests that use the same server."""
    yield
    empty(local, SETS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_answer_is_as_documented(local: InProcessClient, name: str) -> None:
    @seed(20_260_101)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        case = data.draw(OPERATIONS[name].as_strategy())
        bounded(case)
        if "{name}" in case.path and data.draw(st.booleans()):
            case.path_parameters["name"] = "there"
        local.put(path_of("there"), cluster("there"))
        case.validate_response(answered(local, case), checks=CHECKS)

    holds()


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name.startswith(("create", "replace", "patch"))])
def test_objects_made_from_the_schema_can_be_taken(local: InProcessClient, name: str) -> None:
    """A document that describes something else would show as refusals only."""
    statuses: list[int] = []
    there = team_set("there") if "ClusterSet" in name else cluster("there")

    @seed(20_260_102)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def send(data: st.DataObject) -> None:
        case = data.draw(OPERATIONS[name].as_strategy())
        path = case.path.replace("{name}", "there")
        local.put(f"{path.partition('/there')[0]}/there", there)
        body = case.body if isinstance(case.body, dict) else {}
        metadata = {"name": "there"} if "{name}" in case.path else {"generateName": "made-"}
        part = "status" if case.path.endswith("/status") else "spec"
        whole = {**there, "metadata": metadata, part: body.get(part)}
        answer = (
            local.patch(path, {part: body.get(part)})
            if name.startswith("patch")
            else local.request("PUT" if "{name}" in case.path else "POST", path, body=whole)
        )
        statuses.append(answer.status)
        assert answer.status < 500, answer.body

    send()
    assert {status for status in statuses if status < 300}, statuses
