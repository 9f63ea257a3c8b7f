"""What somebody without rights is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import BASE, CLUSTERS, OLD_WATCH, path_of

NOBODY = {"Authorization": "Bearer nobodytoken"}
GROUP = "clusterregistry.k8s.io"


@pytest.mark.parametrize(
    ("method", "path", "verb", "resource", "name"),
    [
        ("GET", CLUSTERS, "list", "clusters", ""),
        ("GET", CLUSTERS + "?watch=true", "watch", "clusters", ""),
        ("GET", OLD_WATCH, "watch", "clusters", ""),
        ("GET", OLD_WATCH + "/a", "watch", "clusters", "a"),
        ("GET", CLUSTERS + "?fieldSelector=metadata.name%3Da", "list", "clusters", "a"),
        ("DELETE", CLUSTERS + "?fieldSelector=metadata.name%3Da", "deletecollection", "clusters", "a"),
        ("GET", path_of("a"), "get", "clusters", "a"),
        ("HEAD", path_of("a"), "get", "clusters", "a"),
        ("POST", CLUSTERS, "create", "clusters", ""),
        ("PUT", path_of("a"), "update", "clusters", "a"),
        ("PATCH", path_of("a"), "patch", "clusters", "a"),
        ("DELETE", path_of("a"), "delete", "clusters", "a"),
        ("DELETE", CLUSTERS, "deletecollection", "clusters", ""),
        ("GET", path_of("a") + "/status", "get", "clusters/status", "a"),
        ("PUT", path_of("a") + "/status", "update", "clusters/status", "a"),
        ("GET", path_of("a") + "/none", "get", "clusters/none", "a"),
        ("GET", f"{BASE}/nothings/a", "get", "nothings", "a"),
    ],
)
def test_the_refusal_of_a_resource(  # noqa: PLR0913 - a table
    client: Client, *, method: str, path: str, verb: str, resource: str, name: str
) -> None:
    answer = client.request(method, path, body=b"not even json", headers=NOBODY)
    assert answer.status == 403
    if method == "HEAD":
        return
    refused = answer.refused(403, "Forbidden")
    plural = resource.partition("/")[0]
    subject = f'{plural}.{GROUP} "{name}"' if name else f"{plural}.{GROUP}"
    assert refused["message"] == (
        f'{subject} is forbidden: User "nobody" cannot {verb} resource "{resource}" in API group "{GROUP}" '
        "at the cluster scope"
    )
    details: dict[str, Any] = {"group": GROUP, "kind": plural}
    assert refused["details"] == ({"name": name, **details} if name else details)


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [("GET", "/metrics", "get"), ("GET", "/nothing", "get"), ("POST", "/healthz", "post"), ("GET", "/", "get")],
)
def test_the_refusal_of_a_path(client: Client, method: str, path: str, verb: str) -> None:
    refused = client.request(method, path, headers=NOBODY).refused(403, "Forbidden")
    assert refused["message"] == f'forbidden: User "nobody" cannot {verb} path "{path}"'
    assert refused["details"] == {}


def test_in_a_namespace_the_refusal_names_it(client: Client) -> None:
    refused = client.get(f"{BASE}/namespaces/default/clusters", headers=NOBODY).refused(403, "Forbidden")
    assert refused["message"].endswith('in API group "clusterregistry.k8s.io" in the namespace "default"')


def test_nothing_can_be_learnt_from_a_refusal(client: Client) -> None:
    """It comes before what is there is looked at: existing and missing objects are refused alike."""
    client.put(path_of("there"), {"kind": "x"}, headers=NOBODY).refused(403, "Forbidden")
    there = client.get(path_of("there"), headers=NOBODY).refused(403, "Forbidden")
    missing = client.get(path_of("elsewhere"), headers=NOBODY).refused(403, "Forbidden")
    assert there["message"].replace("there", "x") == missing["message"].replace("elsewhere", "x")


def test_hostile_names_come_back_harmless(client: Client) -> None:
    refused = client.get(f"{CLUSTERS}/%3Cscript%3E%22", headers=NOBODY).refused(403, "Forbidden")
    assert "<script>" not in refused["message"].partition("is forbidden")[2]
