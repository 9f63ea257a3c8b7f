from __future__ import annotations

from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import BASE, CLUSTERS, cluster, path_of

DOCUMENTED = {
    "apiserver_request_total",
    "apiserver_request_duration_seconds_bucket",
    "apiserver_response_sizes_bucket",
    "apiserver_current_inflight_requests",
    "apiserver_dropped_requests_total",
    "apiserver_longrunning_requests",
    "apiserver_storage_objects",
    "apiserver_terminated_watchers_total",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_open_fds",
    "python_info",
}
Series = tuple[str, frozenset[tuple[str, str]]]


def measured(client: Client) -> dict[Series, float]:
    text = client.get("/metrics").body.decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(found: dict[Series, float], name: str, **labels: str) -> float:
    return sum(value for (each, its), value in found.items() if each == name and labels.items() <= dict(its).items())


def test_the_documented_names_are_there(client: Client) -> None:
    client.get(CLUSTERS)  # a request is counted when it is answered: the first one does not see itself
    assert {name for name, _ in measured(client)} >= DOCUMENTED


def test_it_is_the_text_that_prometheus_reads(client: Client) -> None:
    assert client.get("/metrics").header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize("token", [None, "Bearer nobodytoken"])
def test_they_are_not_for_everybody(client: Client, token: str | None) -> None:
    client.get("/metrics", headers={"Authorization": token}).refused(403, "Forbidden")


def test_requests_are_counted_by_verb_and_code(client: Client) -> None:
    before = measured(client)
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.post(CLUSTERS, cluster("a"), dryRun="All").refused(409, "AlreadyExists")
    client.get(path_of("a")).expect(200)
    client.get(path_of("none")).refused(404, "NotFound")
    client.get(CLUSTERS).expect(200)
    client.put(path_of("a"), cluster("a", "gce")).expect(200)
    client.patch(path_of("a") + "/status", {}).expect(200)
    client.delete(path_of("a")).expect(200)
    client.delete(CLUSTERS).expect(200)
    with client.watch(CLUSTERS):
        after = measured(client)
    ours = {"group": "clusterregistry.k8s.io", "version": "v1alpha1", "resource": "clusters"}

    def grown(**labels: str) -> float:
        name = "apiserver_request_total"
        return total(after, name, **ours, **labels) - total(before, name, **ours, **labels)

    assert grown(verb="POST", code="201", dry_run="", scope="resource") == 1
    assert grown(verb="POST", code="409", dry_run="All") == 1
    assert grown(verb="GET", code="200", subresource="") == 1
    assert grown(verb="GET", code="404") == 1
    assert grown(verb="LIST", code="200", scope="cluster") == 1
    assert grown(verb="PUT", code="200") == 1
    assert grown(verb="PATCH", code="200", subresource="status") == 1
    assert grown(verb="DELETE", code="200") == 1
    assert grown(verb="DELETECOLLECTION", code="200") == 1
    assert grown(verb="WATCH", code="200") == 1
    assert total(after, "apiserver_longrunning_requests") == 1


def test_durations_and_sizes_go_along(client: Client) -> None:
    client.get(CLUSTERS).expect(200)
    found = measured(client)
    for name in ("apiserver_request_duration_seconds_count", "apiserver_response_sizes_count"):
        assert total(found, name, verb="LIST", resource="clusters") >= 1


def test_objects_and_requests_under_way(client: Client) -> None:
    for name in "abc":
        client.post(CLUSTERS, cluster(name)).expect(201)
    found = measured(client)
    assert total(found, "apiserver_storage_objects", resource="clusters.clusterregistry.k8s.io") == 3
    assert total(found, "apiserver_current_inflight_requests", request_kind="mutating") == 0
    assert total(found, "apiserver_current_inflight_requests", request_kind="readOnly") == 1  # this one


def test_no_client_can_add_series_without_end(client: Client) -> None:
    def strange(number: int) -> None:
        client.get(path_of(f"none-{number}"))
        client.get(f"{path_of('a')}/sub{number}")
        client.get(f"{BASE}/nothing{number}/a")
        client.get(f"/apis/group{number}.example.com/v1/things")
        client.get(f"/apis/clusterregistry.k8s.io/v{number}/clusters")
        client.get(f"/nothing/{number}")
        client.get(f"{BASE}/namespaces/n{number}/clusters")
        client.request(f"METHOD{number}", CLUSTERS)
        client.get(CLUSTERS, headers={"User-Agent": f"agent/{number}", "Accept": f"text/x{number}"})
        client.post(CLUSTERS, cluster("a"), dryRun=f"value{number}")
        client.get(CLUSTERS, headers={"Authorization": f"Bearer wrong{number}"})

    strange(1)
    once = measured(client).keys()
    for number in range(2, 8):
        strange(number)
    assert measured(client).keys() == once


def test_no_label_holds_a_name_or_a_path(client: Client) -> None:
    client.post(CLUSTERS, cluster("very-particular-name")).expect(201)
    client.get(path_of("very-particular-name")).expect(200)
    client.get("/very/particular/path")
    text = client.get("/metrics").body.decode()
    assert "particular" not in text


def test_every_series_comes_once(client: Client) -> None:
    text = client.get("/metrics").body.decode()
    series = Counter(line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#"))
    assert max(series.values()) == 1
