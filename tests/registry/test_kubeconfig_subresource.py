"""The subresource ``kubeconfig`` over the API: who reads it, what is answered, and that nothing writes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.apiserver.api.clients import NOBODY, Client, empty
from tests.apiserver.api.group_objects import SETS, TEAM, give, on_sets, team_set
from tests.apiserver.api.objects import CLUSTERS, TABLE, cluster, path_of
from tests.apiserver.api.rbac_objects import BINDINGS, binding, rule

BETA = "/apis/clusterregistry.k8s.io/v1beta1"
ENDPOINTS = [
    {"clientCIDR": "127.0.0.0/8", "serverAddress": "127.0.0.1:6443"},
    {"clientCIDR": "10.0.0.0/8", "serverAddress": "10.0.0.1"},
    {"serverAddress": "paris.example.com"},
]
AZURE = {"exec": "kubelogin", "serverID": "6dae42f8-4368-4678-94ff-3960e28e3630"}
ELSEWHERE = {"X-Forwarded-For": "203.0.113.9, 127.0.0.1"}


@pytest.fixture
def paris(client: Client) -> Iterator[Client]:
    """A registry with the cluster ``paris``, of the team red, and one without an address."""
    obj = cluster("paris", labels={TEAM: "red"})
    providers = [{"name": "corp", "config": AZURE}]
    obj["spec"] = {"kubernetesApiEndpoints": {"serverEndpoints": ENDPOINTS}, "authInfo": {"providers": providers}}
    client.post(CLUSTERS, obj).expect(201)
    client.post(CLUSTERS, cluster("nowhere")).expect(201)
    yield client
    give(client, "nobody")
    empty(client, SETS)


def config_path(name: str = "paris", base: str = CLUSTERS) -> str:
    return f"{base}/{name}/kubeconfig"


def server(config: dict[str, Any]) -> str:
    return str(config["clusters"][0]["cluster"]["server"])


@pytest.mark.parametrize("base", [CLUSTERS, f"{BETA}/clusters"])
def test_it_is_a_kubeconfig_in_each_version(paris: Client, base: str) -> None:
    config = paris.get(config_path(base=base)).expect(200)
    assert (config["kind"], config["apiVersion"], config["current-context"]) == ("Config", "v1", "paris")
    assert config["users"][0]["user"]["exec"]["command"] == "kubelogin"


def test_the_server_is_that_for_the_address_of_the_caller(paris: Client) -> None:
    assert server(paris.get(config_path(), headers=ELSEWHERE).expect(200)) == "https://paris.example.com:443"
    inside = {"X-Forwarded-For": "10.9.9.9"}
    assert server(paris.get(config_path(), headers=inside).expect(200)) == "https://10.0.0.1:443"
    forged = {"X-Forwarded-For": "no address"}
    assert paris.get(config_path(), headers=forged).expect(200)["kind"] == "Config"


def test_it_comes_as_yaml_and_never_as_a_table(paris: Client) -> None:
    answer = paris.get(config_path(), headers={"Accept": "application/yaml"})
    assert answer.status == 200
    assert answer.header("content-type") == "application/yaml"
    assert yaml.safe_load(answer.body) == paris.get(config_path()).expect(200)
    assert paris.get(config_path(), headers=TABLE).expect(200)["kind"] == "Config"
    paris.get(config_path(), headers={"Accept": "text/html"}).refused(406, "NotAcceptable")
    assert paris.get(config_path(), pretty="true").body.startswith(b"{\n")


def test_who_may_read_the_cluster_may_not_read_it_without_the_right(paris: Client) -> None:
    give(paris, "nobody", rule("get", resource="clusters"))
    paris.get(path_of("paris"), headers=NOBODY).expect(200)
    status = paris.get(config_path(), headers=NOBODY).refused(403, "Forbidden")
    assert 'cannot get resource "clusters/kubeconfig"' in status["message"]
    give(paris, "nobody", rule("get", resource="clusters/kubeconfig"))
    paris.get(config_path(), headers=NOBODY).expect(200)
    paris.get(path_of("paris"), headers=NOBODY).refused(403, "Forbidden")


def test_the_default_role_of_readers_has_it(paris: Client) -> None:
    paris.post(BINDINGS, binding("viewers", "view", User="nobody")).expect(201)
    paris.get(config_path(), headers=NOBODY).expect(200)
    paris.delete(f"{BINDINGS}/viewers").expect(200)
    paris.get(config_path(), headers=NOBODY).refused(403, "Forbidden")


def test_rights_on_sets_have_a_name_for_it(paris: Client) -> None:
    paris.post(SETS, team_set("red")).expect(201)
    give(paris, "nobody", on_sets("get", names=["red"]))
    paris.get(config_path(), headers=NOBODY).refused(403, "Forbidden")
    give(paris, "nobody", on_sets("get", names=["red"], subresource="kubeconfig"))
    paris.get(config_path(), headers=NOBODY).expect(200)
    for name in ("nowhere", "missing"):
        paris.get(config_path(name), headers=NOBODY).refused(403, "Forbidden")
    paris.patch(path_of("paris"), {"metadata": {"labels": None}}).expect(200)
    paris.get(config_path(), headers=NOBODY).refused(403, "Forbidden")


def test_there_is_none_of_what_is_missing_or_has_no_address(paris: Client) -> None:
    paris.get(config_path("missing")).refused(404, "NotFound")
    status = paris.get(config_path("nowhere")).refused(400, "BadRequest")
    assert "serverEndpoints has no entry" in status["message"]
    paris.get(f"{path_of('paris')}/kubeconfigs").refused(404, "NotFound")


def test_nothing_writes_it(paris: Client) -> None:
    config = {"kind": "Config", "apiVersion": "v1"}
    for answer in (
        paris.put(config_path(), config),
        paris.patch(config_path(), config),
        paris.post(config_path(), config),
        paris.delete(config_path()),
    ):
        answer.refused(405, "MethodNotAllowed")


def test_reads_can_ask_for_a_version_of_the_cluster(paris: Client) -> None:
    version = paris.get(path_of("paris")).expect(200)["metadata"]["resourceVersion"]
    paris.get(config_path(), resourceVersion=version).expect(200)
    paris.get(config_path(), resourceVersion="0").expect(200)
    paris.get(config_path(), resourceVersion="nonsense").expect(400)


def test_discovery_and_open_api_have_it(paris: Client) -> None:
    listed = {each["name"]: each for each in paris.get(BETA).expect(200)["resources"]}
    entry = listed["clusters/kubeconfig"]
    assert (entry["kind"], entry["version"], entry["verbs"]) == ("Config", "v1", ["get"])
    described = paris.get("/openapi/v3/apis/clusterregistry.k8s.io/v1beta1").expect(200)
    operations = described["paths"][f"{BETA}/clusters/{{name}}/kubeconfig"]
    assert operations["get"]["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Config"}
    assert set(operations) & {"put", "patch", "post", "delete"} == set()
    aggregated = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    groups = paris.get("/apis", headers=aggregated).expect(200)["items"]
    resources = next(each for each in groups if each["metadata"]["name"] == "clusterregistry.k8s.io")["versions"]
    found = next(each for each in resources[0]["resources"] if each["resource"] == "clusters")["subresources"]
    assert [each["subresource"] for each in found] == ["status", "kubeconfig"]
    assert found[1]["responseKind"] == {"group": "", "version": "v1", "kind": "Config"}
