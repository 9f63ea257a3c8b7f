"""Plain and aggregated discovery of groups."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from clusterregistry.apiserver.discovery import documents, groups
from tests.apiserver.discovery.examples import CARS, GROUP, NOTES, PRICES, RESOURCES, WIDGETS


def test_api_announces_the_core_version_so_that_kubectl_knows_the_kind_list() -> None:
    assert groups.api_versions(server_address="host:1") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "host:1"}],
    }


def test_the_core_group_has_the_kind_list_and_no_verb_for_it() -> None:
    listed = groups.api_resource_list(RESOURCES, group="", version="v1")
    assert listed is not None
    assert (listed["kind"], listed["groupVersion"]) == ("APIResourceList", "v1")
    assert [(entry["name"], entry["kind"], entry["verbs"]) for entry in listed["resources"]] == [("lists", "List", [])]


def test_groups_stand_in_the_order_of_the_resources_with_the_first_version_preferred() -> None:
    listed = groups.api_group_list(RESOURCES)
    assert (listed["kind"], listed["apiVersion"]) == ("APIGroupList", "v1")
    assert [group["name"] for group in listed["groups"]] == [GROUP, "cars.example.org"]
    assert listed["groups"][0] == {
        "name": GROUP,
        "versions": [
            {"groupVersion": f"{GROUP}/v1", "version": "v1"},
            {"groupVersion": f"{GROUP}/v1beta1", "version": "v1beta1"},
        ],
        "preferredVersion": {"groupVersion": f"{GROUP}/v1", "version": "v1"},
    }


def test_a_group_on_its_own_has_a_kind_and_an_unknown_one_is_none() -> None:
    group = groups.api_group(RESOURCES, "cars.example.org")
    version = {"groupVersion": "cars.example.org/v2", "version": "v2"}
    assert group == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "cars.example.org",
        "versions": [version],
        "preferredVersion": version,
    }
    assert groups.api_group(RESOURCES, "nope.example.org") is None


def test_the_resources_of_a_version_have_the_keys_in_the_order_of_kube_apiserver() -> None:
    listed = groups.api_resource_list(RESOURCES, group=GROUP, version="v1")
    assert listed is not None
    assert list(listed) == ["kind", "apiVersion", "groupVersion", "resources"]
    main, status = listed["resources"]
    assert list(main.items()) == [
        ("name", "widgets"),
        ("singularName", "widget"),
        ("namespaced", False),
        ("kind", "Widget"),
        ("verbs", ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]),
        ("shortNames", ["wd"]),
        ("categories", ["all"]),
        ("storageVersionHash", groups.storage_version_hash(WIDGETS)),
    ]
    assert list(status.items()) == [
        ("name", "widgets/status"),
        ("singularName", ""),
        ("namespaced", False),
        ("kind", "Widget"),
        ("verbs", ["get", "patch", "update"]),
    ]


def test_a_version_lists_the_resources_that_have_it_and_no_status_where_there_is_none() -> None:
    listed = groups.api_resource_list(RESOURCES, group=GROUP, version="v1beta1")
    assert listed is not None
    assert [entry["name"] for entry in listed["resources"]] == ["widgets", "widgets/status", "prices"]
    assert not {"shortNames", "categories"} & set(listed["resources"][2])


@pytest.mark.parametrize(("group", "version"), [(GROUP, "v9"), ("nope.example.com", "v1"), ("cars.example.org", "v1")])
def test_an_unknown_group_or_version_is_none(group: str, version: str) -> None:
    assert groups.api_resource_list(RESOURCES, group=group, version=version) is None


def test_watch_can_be_left_out_of_the_verbs() -> None:
    listed = groups.api_resource_list([CARS], group=CARS.group, version="v2", enable_watch=False)
    assert listed is not None
    assert listed["resources"][0]["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update"]


def test_the_storage_version_hash_is_the_one_that_kube_apiserver_computes() -> None:
    recorded = replace(PRICES, group="clusterregistry.k8s.io", kind="Cluster", storage_version="v1alpha1")
    assert groups.storage_version_hash(recorded) == "xQPNSkhCVNY="


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


def test_the_aggregated_core_group_has_the_kind_list_and_no_verb_for_it() -> None:
    assert groups.aggregated_core(RESOURCES, "v2beta1") == {
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


def test_a_namespaced_kind_of_the_core_group_and_of_another_one_is_announced_in_both() -> None:
    resources = (*RESOURCES, NOTES)
    core = groups.api_resource_list(resources, group="", version="v1")
    named = groups.api_resource_list(resources, group="notes.example.org", version="v1")
    assert core is not None
    assert named is not None
    assert [(entry["name"], entry["namespaced"]) for entry in core["resources"]] == [
        ("notes", True),
        ("notes/status", True),
    ]
    assert core["resources"] == named["resources"]
    assert groups.api_group(resources, "") is None
    assert "notes.example.org" in [group["name"] for group in groups.api_group_list(resources)["groups"]]


def test_the_aggregated_core_group_has_its_kinds_with_their_scope() -> None:
    listed = groups.aggregated_core((*RESOURCES, NOTES), "v2")
    (version,) = listed["items"][0]["versions"]
    assert [(entry["resource"], entry["scope"], entry["responseKind"]["group"]) for entry in version["resources"]] == [
        ("notes", "Namespaced", "")
    ]
