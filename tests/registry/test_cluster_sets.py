"""Cluster sets over the API: what a set may hold, its status, columns and versions, and who may do what by default."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from clusterregistry.api.clusterregistry.v1beta1.cluster_set import MOST_CONDITIONS, MOST_NAMES, MOST_VALUES
from tests.apiserver.api.clients import Client, causes, empty
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import APPLY_PATCH, CLUSTERS, TABLE, cluster, names
from tests.apiserver.api.rbac_objects import BINDINGS, NOBODY, binding

GROUP = "clusterregistry.k8s.io"
SETS = f"/apis/{GROUP}/v1beta1/clustersets"
OLD_SETS = f"/apis/{GROUP}/v1alpha1/clustersets"


@pytest.fixture(autouse=True)
def _no_sets_afterwards(client: Client) -> Iterator[None]:
    """The server is that of other tests too."""
    yield
    empty(client, SETS)


def cluster_set(name: str = "prod", *, version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "ClusterSet", "metadata": {"name": name}, "spec": spec}


def expression(operator: str, key: str = "env", values: list[str] | None = None) -> dict[str, Any]:
    return {"key": key, "operator": operator} | ({} if values is None else {"values": values})


def counted(client: Client, name: str, *, clusters: int, found: str = "True") -> dict[str, Any]:
    """The set once its status says so; that may take a moment."""
    with client.watch(SETS, fieldSelector=f"metadata.name={name}") as watch:
        obj: dict[str, Any] = watch.next()["object"]
        while not is_counted(obj, clusters=clusters, found=found):
            obj = watch.next()["object"]
    return obj


def is_counted(obj: dict[str, Any], *, clusters: int, found: str) -> bool:
    status, generation = obj.get("status", {}), obj["metadata"]["generation"]
    conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
    seen = (status.get("clusters"), conditions.get("ClustersFound"), status.get("observedGeneration"))
    return seen == (clusters, found, generation)


def test_a_set_counts_its_members_while_clusters_and_labels_change(client: Client) -> None:
    client.post(SETS, cluster_set(selector={"matchLabels": {"env": "prod"}}, clusters=["named"])).expect(201)
    missing = counted(client, "prod", clusters=0, found="False")["status"]["conditions"][0]
    assert missing["reason"] == "NameNotFound"
    assert missing["message"] == "spec.clusters names clusters that do not exist: named."
    client.post(CLUSTERS, cluster("named")).expect(201)
    found = counted(client, "prod", clusters=1)["status"]["conditions"][0]
    assert (found["reason"], found["message"]) == ("AllFound", "All clusters that spec.clusters names exist.")
    client.post(CLUSTERS, cluster("a", labels={"env": "prod"})).expect(201)
    counted(client, "prod", clusters=2)
    client.patch(f"{CLUSTERS}/a", {"metadata": {"labels": {"env": "dev"}}}).expect(200)
    counted(client, "prod", clusters=1)
    client.patch(f"{SETS}/prod", {"spec": {"selector": {"matchLabels": {"env": "dev"}}}}).expect(200)
    counted(client, "prod", clusters=2)
    client.delete(f"{CLUSTERS}/named").expect(200)
    counted(client, "prod", clusters=1, found="False")


def test_an_empty_selector_selects_every_cluster_and_an_absent_one_none(client: Client) -> None:
    for name in ("a", "b"):
        client.post(CLUSTERS, cluster(name)).expect(201)
    stored = client.post(SETS, cluster_set("all", selector={})).expect(201)
    assert stored["spec"] == {"selector": {}}
    client.post(SETS, cluster_set("none")).expect(201)
    client.post(SETS, cluster_set("null", selector=None, clusters=None)).expect(201)
    counted(client, "all", clusters=2)
    counted(client, "none", clusters=0)
    counted(client, "null", clusters=0)


def test_a_status_that_someone_else_writes_is_mended_and_other_conditions_stay(client: Client) -> None:
    client.post(SETS, cluster_set(clusters=[])).expect(201)
    right = counted(client, "prod", clusters=0)
    other = {**right["status"]["conditions"][0], "type": "example.com/Reviewed", "reason": "Seen", "message": "by bo"}
    status = {"clusters": 7, "conditions": [other]}
    client.patch(f"{SETS}/prod/status", {"status": status}).expect(200)
    mended = counted(client, "prod", clusters=0)["status"]["conditions"]
    assert [each["type"] for each in mended] == ["example.com/Reviewed", "ClustersFound"]
    assert mended[0] == other


WRONG: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "a key": (
        {"selector": {"matchLabels": {"a b": "x"}}},
        [("spec.selector.matchLabels", "FieldValueInvalid")],
    ),
    "a value": ({"selector": {"matchLabels": {"a": "-"}}}, [("spec.selector.matchLabels", "FieldValueInvalid")]),
    "no values": (
        {"selector": {"matchExpressions": [expression("In")]}},
        [("spec.selector.matchExpressions[0].values", "FieldValueRequired")],
    ),
    "values": (
        {"selector": {"matchExpressions": [expression("Exists"), expression("DoesNotExist", values=["x"])]}},
        [("spec.selector.matchExpressions[1].values", "FieldValueForbidden")],
    ),
    "an operator": (
        {"selector": {"matchExpressions": [expression("Gt", values=["1"])]}},
        [("spec.selector.matchExpressions[0].operator", "FieldValueInvalid")],
    ),
    "a name": ({"clusters": ["oslo", "Oslo"]}, [("spec.clusters[1]", "FieldValueInvalid")]),
    "a name twice": ({"clusters": ["oslo", "oslo"]}, [("spec.clusters[1]", "FieldValueDuplicate")]),
    "too many names": (
        {"clusters": [f"c-{number}" for number in range(MOST_NAMES + 1)]},
        [("spec.clusters", "FieldValueTooMany")],
    ),
    "too many conditions": (
        {"selector": {"matchLabels": {f"l{number}": "" for number in range(MOST_CONDITIONS + 1)}}},
        [("spec.selector", "FieldValueTooMany")],
    ),
    "too many values": (
        {"selector": {"matchExpressions": [expression("In", values=["x"] * (MOST_VALUES + 1))]}},
        [("spec.selector.matchExpressions", "FieldValueTooMany")],
    ),
    "types": (
        {"selector": {"matchLabels": [], "matchExpressions": {}}, "clusters": {}},
        [
            ("spec.clusters", "FieldValueTypeInvalid"),
            ("spec.selector.matchExpressions", "FieldValueTypeInvalid"),
            ("spec.selector.matchLabels", "FieldValueTypeInvalid"),
        ],
    ),
    "types further in": (
        {"selector": {"matchExpressions": [3, {"key": 1, "operator": "In", "values": [1]}]}, "clusters": [1]},
        [
            ("spec.clusters[0]", "FieldValueTypeInvalid"),
            ("spec.selector.matchExpressions[0]", "FieldValueTypeInvalid"),
            ("spec.selector.matchExpressions[1].key", "FieldValueTypeInvalid"),
            ("spec.selector.matchExpressions[1].values[0]", "FieldValueTypeInvalid"),
        ],
    ),
    "an expression without a key": (
        {"selector": {"matchExpressions": [{"operator": "Exists"}]}},
        [("spec.selector.matchExpressions[0].key", "FieldValueRequired")],
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_set_that_is_wrong_is_refused_with_the_path(client: Client, wrong: str) -> None:
    spec, expected = WRONG[wrong]
    sent = cluster_set(**spec)
    refused = client.post(SETS, sent).refused(422, "Invalid")
    assert sorted(causes(refused)) == expected
    client.post(SETS, cluster_set()).expect(201)
    client.put(f"{SETS}/prod", {**sent, "metadata": {"name": "prod"}}).refused(422, "Invalid")
    assert client.get(f"{SETS}/prod").expect(200)["spec"] == {}


def test_as_many_names_and_conditions_as_there_may_be(client: Client) -> None:
    labels = {f"l{number}": "" for number in range(MOST_CONDITIONS - 1)}
    values = [f"v{number}" for number in range(MOST_VALUES)]
    selector = {"matchLabels": labels, "matchExpressions": [expression("In", values=values)]}
    clusters = [f"c-{number}" for number in range(MOST_NAMES)]
    client.post(SETS, cluster_set(selector=selector, clusters=clusters)).expect(201)
    message = counted(client, "prod", clusters=0, found="False")["status"]["conditions"][0]["message"]
    assert message.endswith("c-0, c-1, c-10, c-100, c-101, c-102, c-103, c-104, c-105, c-106 and 990 more.")


def test_names_are_a_set_and_the_selector_is_one_value_in_an_apply(client: Client) -> None:
    first = cluster_set(clusters=["a"], selector={"matchLabels": {"x": "1"}})
    client.patch(f"{SETS}/prod", first, kind=APPLY_PATCH, fieldManager="one").expect(201)
    second = cluster_set(clusters=["b"])
    client.patch(f"{SETS}/prod", second, kind=APPLY_PATCH, fieldManager="two").expect(200)
    assert client.get(f"{SETS}/prod").expect(200)["spec"]["clusters"] == ["a", "b"]
    third = cluster_set(selector={"matchLabels": {"y": "1"}})
    refused = client.patch(f"{SETS}/prod", third, kind=APPLY_PATCH, fieldManager="three").refused(409, "Conflict")
    assert causes(refused) == [(".spec.selector", "FieldManagerConflict")]


def test_the_status_is_written_through_its_subresource_alone(client: Client) -> None:
    client.post(SETS, {**cluster_set(), "status": {"clusters": 3}}).expect(201)
    before = counted(client, "prod", clusters=0)
    client.put(f"{SETS}/prod", {**before, "status": {"clusters": 9}}).expect(200)
    assert client.get(f"{SETS}/prod").expect(200)["status"] == before["status"]
    wrong = {"conditions": [{"type": "a b", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}
    client.patch(f"{SETS}/prod/status", {"status": wrong}).refused(422, "Invalid")
    client.patch(f"{SETS}/prod/status", {"status": {"clusters": -1}}).refused(422, "Invalid")


def test_columns(client: Client) -> None:
    selector = {"matchLabels": {"env": "prod"}, "matchExpressions": [expression("NotIn", "tier", ["b", "a"])]}
    client.post(SETS, cluster_set("a", selector=selector)).expect(201)
    client.post(SETS, cluster_set("b", selector={})).expect(201)
    client.post(SETS, cluster_set("c", clusters=[])).expect(201)
    for name in "abc":
        counted(client, name, clusters=0)
    for collection in (SETS, OLD_SETS):
        table = client.get(collection, headers=TABLE).expect(200)
        shown = [(each["name"], each["priority"]) for each in table["columnDefinitions"]]
        assert shown == [("Name", 0), ("Clusters", 0), ("Age", 0), ("Selector", 1)]
        cells = [(row["cells"][0], row["cells"][1], row["cells"][3]) for row in table["rows"]]
        assert cells == [("a", 0, "env=prod,tier notin (a,b)"), ("b", 0, "<all>"), ("c", 0, None)]


def test_both_versions_show_one_set(client: Client) -> None:
    made = client.post(OLD_SETS, cluster_set(version="v1alpha1", clusters=["a"])).expect(201)
    same = counted(client, "prod", clusters=0, found="False")
    assert (made["apiVersion"], same["apiVersion"]) == (f"{GROUP}/v1alpha1", f"{GROUP}/v1beta1")
    assert (same["metadata"]["uid"], same["spec"]) == (made["metadata"]["uid"], made["spec"])
    assert client.get(f"{OLD_SETS}/prod").expect(200) == {**same, "apiVersion": f"{GROUP}/v1alpha1"}


def test_discovery_names_sets_in_both_versions(client: Client) -> None:
    for version in ("v1alpha1", "v1beta1"):
        resources = client.get(f"/apis/{GROUP}/{version}").expect(200)["resources"]
        found = {each["name"]: each for each in resources}
        one = found["clustersets"]
        assert (one["singularName"], one["kind"], one["namespaced"]) == ("clusterset", "ClusterSet", False)
        assert one["shortNames"] == ["cset"]
        assert found["clustersets/status"]["verbs"] == ["get", "patch", "update"]


def test_the_default_roles_read_and_write_sets(client: Client) -> None:
    try:
        for role, allowed in {"view": [], "edit": [SETS], "admin": [SETS, f"{SETS}/prod/status"]}.items():
            client.post(SETS, cluster_set()).expect(201)
            assert client.get(f"{SETS}/prod", headers=NOBODY).status == 403
            client.post(BINDINGS, binding(f"test-{role}", role, User="nobody")).expect(201)
            assert client.get(SETS, headers=NOBODY).status == 200
            assert client.get(f"{SETS}/prod/status", headers=NOBODY).status == 200
            for path in (SETS, f"{SETS}/prod/status"):
                body = {"metadata": {"labels": {"a": "b"}}} if path == SETS else {"status": {"clusters": 0}}
                target = f"{SETS}/prod" if path == SETS else path
                assert client.patch(target, body, headers=NOBODY).status == (200 if path in allowed else 403)
            client.delete(f"{BINDINGS}/test-{role}").expect(200)
            client.delete(f"{SETS}/prod").expect(200)
    finally:
        for role in ("view", "edit", "admin"):
            client.delete(f"{BINDINGS}/test-{role}")


# --runtime-config


@pytest.mark.parametrize("off", [["v1alpha1"], ["v1beta1"], ["v1alpha1", "v1beta1"]])
def test_sets_are_switched_off_by_version(serve: Callable[..., InProcessClient], off: list[str]) -> None:
    own = serve("--runtime-config=" + ",".join(f"{GROUP}/{version}/clustersets=false" for version in off))
    for version, collection in (("v1alpha1", OLD_SETS), ("v1beta1", SETS)):
        assert own.get(collection).status == (404 if version in off else 200)
        assert own.get(f"/apis/{GROUP}/{version}/clusters").status == 200
    document = json.dumps(own.get(f"/openapi/v3/apis/{GROUP}/v1alpha1").expect(200))
    assert ("ClusterSet" in document) == ("v1alpha1" not in off)


def test_a_set_of_a_version_that_is_not_served_counts_on(serve: Callable[..., InProcessClient]) -> None:
    own = serve(f"--runtime-config={GROUP}/v1beta1=false")
    own.post(OLD_SETS, cluster_set(version="v1alpha1", selector={})).expect(201)
    with own.watch(OLD_SETS) as watch:
        own.post(CLUSTERS, cluster("a")).expect(201)
        while watch.next()["object"].get("status", {}).get("clusters") != 1:
            pass
    assert names(own.get(OLD_SETS).expect(200)) == ["prod"]
