from __future__ import annotations

from dataclasses import replace

import pytest

from clusterregistry.apiserver.discovery import groups
from tests.apiserver.discovery.examples import CARS, GROUP, PRICES, RESOURCES, WIDGETS


def test_api_announces_the_core_version_so_that_kubectl_knows_the_kind_list() -> None:
    assert groups.api_versions(server_address="host:1") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "host:1"}],
    }


def test_the_core_group_has_the_kind_list_and_no_verb_for_it() -> None:
    listed = groups.core_resource_list()
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
def test_what_is_not_served_is_none(group: str, version: str) -> None:
    assert groups.api_resource_list(RESOURCES, group=group, version=version) is None


def test_watch_can_be_left_out_of_the_verbs() -> None:
    listed = groups.api_resource_list([CARS], group=CARS.group, version="v2", enable_watch=False)
    assert listed is not None
    assert listed["resources"][0]["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update"]


def test_the_storage_version_hash_is_the_one_that_kube_apiserver_computes() -> None:
    recorded = replace(PRICES, group="clusterregistry.k8s.io", kind="Cluster", storage_version="v1alpha1")
    assert groups.storage_version_hash(recorded) == "xQPNSkhCVNY="
