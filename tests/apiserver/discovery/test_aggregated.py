from __future__ import annotations

import hashlib
import json

import pytest

from clusterregistry.apiserver.discovery import documents, groups
from tests.apiserver.discovery.examples import GROUP, RESOURCES

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


def test_the_list_has_groups_versions_resources_and_subresources() -> None:
    listed = groups.aggregated_groups(RESOURCES, "v2")
    assert (listed["kind"], listed["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    shop = listed["items"][0]
    assert shop["metadata"] == {"name": GROUP}
    assert [(version["version"], version["freshness"]) for version in shop["versions"]] == [
        ("v1", "Current"),
        ("v1beta1", "Current"),
    ]
    kind = {"group": GROUP, "version": "v1", "kind": "Widget"}
    assert shop["versions"][0]["resources"] == [
        {
            "resource": "widgets",
            "responseKind": kind,
            "scope": "Cluster",
            "singularResource": "widget",
            "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            "shortNames": ["wd"],
            "categories": ["all"],
            "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["get", "patch", "update"]}],
        }
    ]
    assert "subresources" not in shop["versions"][1]["resources"][1]


def test_watch_can_be_left_out() -> None:
    listed = groups.aggregated_groups(RESOURCES, "v2", enable_watch=False)
    assert "watch" not in listed["items"][0]["versions"][0]["resources"][0]["verbs"]


def test_the_core_group_has_the_kind_list_and_no_verb_for_it() -> None:
    assert groups.aggregated_core("v2beta1") == {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2beta1",
        "metadata": {},
        "items": [
            {
                "metadata": {},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "lists",
                                "responseKind": {"group": "", "version": "v1", "kind": "List"},
                                "scope": "Cluster",
                                "singularResource": "",
                                "verbs": [],
                            }
                        ],
                        "freshness": "Current",
                    }
                ],
            }
        ],
    }


def test_the_document_names_its_form_and_is_tagged_with_its_digest() -> None:
    document = groups.aggregated_document(groups.aggregated_groups(RESOURCES, "v2"), "v2")
    assert document.content_type == V2
    assert json.loads(document.body) == groups.aggregated_groups(RESOURCES, "v2")
    assert document.etag == '"' + hashlib.sha512(document.body).hexdigest().upper() + '"'


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (f"{V2},{V2BETA1},application/json", "v2"),
        (f"{V2BETA1},application/json", "v2beta1"),
        (f"application/json;q=0.5, {V2BETA1};q=0.9", "v2beta1"),
        ("application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io, */*", "v2"),
        (f"application/json, {V2}", None),
        (f"application/yaml, {V2}", None),
        (f"*/*, {V2}", "v2"),
        ("application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json", None),
        (f"application/json;g=other;v=v2;as=APIGroupDiscoveryList,{V2BETA1}", "v2beta1"),
        ("application/json;as=Table;g=meta.k8s.io;v=v1", None),
        ("application/json", None),
        ("text/html", None),
        ("", None),
        (";;;=,=;q=x,,", None),
    ],
)
def test_the_accept_header_decides_on_the_form(accept: str, version: str | None) -> None:
    assert documents.aggregated_version(accept, groups.AGGREGATED_VERSIONS) == version
