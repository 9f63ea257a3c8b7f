"""What agents and joining members may do, and all that they may not, whatever roles say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509

from tests.api.certificates.signing_requests import in_base64, pkcs10, subject
from tests.apiserver.api.clients import Client
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.rbac_objects import BINDINGS, binding
from tests.registry.agents.tokens import (
    AGENTS,
    CLUSTERS,
    EVENTS,
    REQUESTS,
    TOKENS,
    agent_request,
    as_agent,
    cluster,
    event,
    new_token,
    with_token,
)

APPLY = "application/apply-patch+yaml"
OWN, OTHER = "edge", "edge-2"
REVIEWS = "/apis/authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def admin(in_process: Any) -> Iterator[InProcessClient]:
    """With two clusters, and a binding that gives every user every right."""
    client: InProcessClient = in_process.client()
    for name in (OWN, OTHER):
        client.post(CLUSTERS, cluster(name)).expect(201)
    everything = binding("everybody", "cluster-admin", Group="system:authenticated")
    client.post(BINDINGS, everything).expect(201)
    client.post(EVENTS, event(OTHER, name=f"{OTHER}.known")).expect(201)
    yield client
    client.delete(f"{BINDINGS}/everybody").expect(200)
    for name in (OWN, OTHER):
        client.delete(f"{CLUSTERS}/{name}").expect(200)


def status(name: str, state: str = "Ready") -> dict[str, Any]:
    return {**cluster(name), "status": {"state": state}}


# Agents


def test_an_agent_reads_its_cluster_and_writes_its_status(admin: Client) -> None:
    headers = as_agent(OWN)
    assert admin.get(f"{CLUSTERS}/{OWN}", headers=headers).expect(200)["metadata"]["name"] == OWN
    listed = admin.get(CLUSTERS, fieldSelector=f"metadata.name={OWN}", headers=headers).expect(200)
    assert [each["metadata"]["name"] for each in listed["items"]] == [OWN]
    path = f"{CLUSTERS}/{OWN}/status"
    query = {"fieldManager": "agent", "force": "true"}
    admin.patch(path, status(OWN), kind=APPLY, headers=headers, **query).expect(200)
    stored = admin.get(path, headers=headers).expect(200)
    assert stored["status"]["state"] == "Ready"
    admin.put(path, {**stored, "status": {"state": "Degraded"}}, headers=headers).expect(200)


def test_an_agent_watches_its_cluster_alone(admin: Client) -> None:
    selector = f"metadata.name={OWN}"
    with admin.watch(CLUSTERS, fieldSelector=selector, headers=as_agent(OWN)) as watch:
        assert watch.status == 200
        admin.patch(f"{CLUSTERS}/{OTHER}", {"metadata": {"annotations": {"example.com/seen": "no"}}}).expect(200)
        admin.patch(f"{CLUSTERS}/{OWN}", {"metadata": {"annotations": {"example.com/seen": "yes"}}}).expect(200)
        seen = {each["object"]["metadata"]["name"] for each in watch.take(2)}
    assert seen == {OWN}


def test_a_write_of_the_status_changes_neither_spec_nor_labels(admin: Client) -> None:
    before = admin.get(f"{CLUSTERS}/{OWN}").expect(200)
    changed = {
        **status(OWN, "Denied"),
        "metadata": {
            "name": OWN,
            "labels": {"env": "prod"},
            "annotations": {"x": "y"},
            "finalizers": ["example.com/x"],
        },
        "spec": {"clusterID": "another"},
    }
    admin.patch(f"{CLUSTERS}/{OWN}/status", changed, headers=as_agent(OWN)).expect(200)
    after = admin.get(f"{CLUSTERS}/{OWN}").expect(200)
    assert after["status"]["state"] == "Denied"
    assert after.get("spec") == before.get("spec")
    for field in ("labels", "annotations", "finalizers"):
        assert after["metadata"].get(field) == before["metadata"].get(field)


REFUSED: dict[str, tuple[str, str, Any]] = {
    "read another cluster": ("GET", f"{CLUSTERS}/{OTHER}", None),
    "read the status of another": ("GET", f"{CLUSTERS}/{OTHER}/status", None),
    "list all clusters": ("GET", CLUSTERS, None),
    "list another by its name": ("GET", f"{CLUSTERS}?fieldSelector=metadata.name={OTHER}", None),
    "list by another field": ("GET", f"{CLUSTERS}?fieldSelector=status.state=Ready", None),
    "list what is not its own": ("GET", f"{CLUSTERS}?fieldSelector=metadata.name!={OWN}", None),
    "list by label": ("GET", f"{CLUSTERS}?labelSelector=env=prod", None),
    "watch all clusters": ("GET", f"{CLUSTERS}?watch=true", None),
    "watch all clusters the old way": ("GET", "/apis/clusterregistry.k8s.io/v1alpha1/watch/clusters", None),
    "write the status of another": ("PATCH", f"{CLUSTERS}/{OTHER}/status", status(OTHER)),
    "replace the status of another": ("PUT", f"{CLUSTERS}/{OTHER}/status", status(OTHER)),
    "write its own spec": ("PATCH", f"{CLUSTERS}/{OWN}", {"spec": {"clusterID": "x"}}),
    "write its own labels": ("PATCH", f"{CLUSTERS}/{OWN}", {"metadata": {"labels": {"env": "prod"}}}),
    "replace its own cluster": ("PUT", f"{CLUSTERS}/{OWN}", cluster(OWN)),
    "create a cluster": ("POST", CLUSTERS, cluster("third")),
    "create by replacing": ("PUT", f"{CLUSTERS}/third", cluster("third")),
    "delete its own cluster": ("DELETE", f"{CLUSTERS}/{OWN}", None),
    "delete another": ("DELETE", f"{CLUSTERS}/{OTHER}", None),
    "delete a collection": ("DELETE", f"{CLUSTERS}?fieldSelector=metadata.name={OWN}", None),
    "list bootstrap tokens": ("GET", TOKENS, None),
    "list roles": ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", None),
    "list events": ("GET", EVENTS, None),
    "delete events": ("DELETE", EVENTS, None),
    "report an event about another": ("POST", EVENTS, event(OWN, regarding=OTHER)),
    "report an event about another kind": ("POST", EVENTS, event(OWN, kind="Pod")),
    "report an event about another group": ("POST", EVENTS, event(OWN, apiVersion="example.com/v1")),
    "report an event about an object in a namespace": ("POST", EVENTS, event(OWN, namespace="default")),
    "report an event under the name of another's": ("POST", EVENTS, event(OWN, name=f"{OTHER}.1")),
    "change an event about another": ("PATCH", f"{EVENTS}/{OTHER}.known", {"message": "x"}),
    "report an event elsewhere": (
        "POST",
        "/api/v1/namespaces/kube-system/events",
        {**event(OWN), "metadata": {"name": f"{OWN}.1", "namespace": "kube-system"}},
    ),
    "list requests": ("GET", REQUESTS, None),
    "read another's request": ("GET", f"{REQUESTS}/agent:{OTHER}:1", None),
    "approve": ("PUT", f"{REQUESTS}/agent:{OWN}:1/approval", agent_request(OWN)),
    "sign": ("PUT", f"{REQUESTS}/agent:{OWN}:1/status", agent_request(OWN)),
    "request another's certificate": ("POST", REQUESTS, agent_request(OTHER)),
    "request another user's": ("POST", REQUESTS, agent_request(OWN, user="ann")),
    "request another agent's": ("POST", REQUESTS, agent_request(OWN, user=f"system:clusterregistry:agent:{OTHER}")),
    "request another group": ("POST", REQUESTS, agent_request(OWN, groups=("devs",))),
    "request a further group": ("POST", REQUESTS, agent_request(OWN, groups=(AGENTS, "devs"))),
    "request no group": ("POST", REQUESTS, agent_request(OWN, groups=())),
    "request for masters": ("POST", REQUESTS, agent_request(OWN, groups=("system:masters",))),
    "request of another signer": ("POST", REQUESTS, agent_request(OWN, signerName="example.com/signer")),
    "request for a server": (
        "POST",
        REQUESTS,
        agent_request(OWN, usages=["client auth", "server auth"]),
    ),
    "request for ever": ("POST", REQUESTS, agent_request(OWN, expirationSeconds=None)),
    "request for years": ("POST", REQUESTS, agent_request(OWN, expirationSeconds=365 * 86400)),
    "review other users": (
        "POST",
        f"{REVIEWS}/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "clusters"}},
        },
    ),
    "read metrics": ("GET", "/metrics", None),
    "read profiles": ("GET", "/debug/pprof/goroutine", None),
    "list leases": ("GET", "/apis/coordination.k8s.io/v1/leases", None),
    "create a namespace": (
        "POST",
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_agent_may_do_nothing_else(admin: Client, what: str) -> None:
    method, path, body = REFUSED[what]
    headers: dict[str, str | None] = {**as_agent(OWN)}
    if method == "PATCH":
        headers["Content-Type"] = "application/merge-patch+json"
    target, _, query = path.partition("?")
    pairs = dict(part.split("=", 1) for part in query.split("&")) if query else None
    answer = admin.request(method, target, query=pairs, body=body, headers=headers)
    answer.refused(403, "Forbidden")


def test_a_request_with_other_names_is_refused(admin: Client) -> None:
    alternatives = (x509.DNSName("registry.example.com"),)
    data = pkcs10("secp256r1", name=subject(f"system:clusterregistry:agent:{OWN}", AGENTS), alternatives=alternatives)
    request = agent_request(OWN, request=in_base64(data))
    admin.post(REQUESTS, request, headers=as_agent(OWN)).refused(403, "Forbidden")
    unnamed = {**agent_request(OWN), "metadata": {"generateName": "agent-"}}
    admin.post(REQUESTS, unnamed, headers=as_agent(OWN)).refused(403, "Forbidden")


@pytest.mark.parametrize("field", ["finalizers", "ownerReferences", "labels", "annotations"])
def test_a_request_has_nothing_that_keeps_it(admin: Client, field: str) -> None:
    # One with a finalizer would stay for ever, and fifty of them end the renewals of the next cluster of that name.
    request = agent_request(OWN)
    request["metadata"] |= METADATA[field]
    admin.post(REQUESTS, request, headers=as_agent(OWN)).refused(403, "Forbidden")
    request["metadata"].pop(field)
    admin.post(REQUESTS, request, headers=as_agent(OWN)).expect(201)


METADATA: dict[str, dict[str, Any]] = {
    "finalizers": {"finalizers": ["example.com/x"]},
    "ownerReferences": {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": "1"}]},
    "labels": {"labels": {"a": "b"}},
    "annotations": {"annotations": {"a": "b"}},
}


def test_what_an_agent_writes_is_bounded(admin: Client) -> None:
    headers, path = as_agent(OWN), f"{CLUSTERS}/{OWN}/status"
    conditions = [
        {
            "type": f"T{number}",
            "status": "True",
            "reason": "R",
            "message": "x" * 1000,
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }
        for number in range(64)
    ]
    admin.patch(path, {"status": {"conditions": conditions[:50]}}, headers=headers).expect(200)
    admin.patch(path, {"status": {"conditions": conditions}}, headers=headers).refused(403, "Forbidden")
    admin.patch(path, {"status": {"conditions": conditions}}).expect(200)
    admin.patch(path, {"status": None}, headers=headers).expect(200)
    reported = event(OWN)
    for held in ("finalizers", "ownerReferences"):
        wrong = {**reported, "metadata": {**reported["metadata"], **METADATA[held]}}
        admin.post(EVENTS, wrong, headers=headers).refused(403, "Forbidden")
    admin.post(EVENTS, {**reported, "message": "x" * 20_000}, headers=headers).refused(403, "Forbidden")
    admin.post(EVENTS, {**reported, "message": "x" * 10_000}, headers=headers).expect(201)
    grown = f"{EVENTS}/{reported['metadata']['name']}"
    admin.patch(grown, {"message": "x" * 20_000}, headers=headers).refused(403, "Forbidden")


def test_an_agent_reports_events_about_its_cluster(admin: Client) -> None:
    reported = event(OWN)
    path = f"{EVENTS}/{reported['metadata']['name']}"
    admin.post(EVENTS, reported, headers=as_agent(OWN)).expect(201)
    admin.patch(path, {"count": 2}, headers=as_agent(OWN)).expect(200)
    taken_over = {"involvedObject": {"name": OTHER}}
    admin.patch(path, taken_over, headers=as_agent(OWN)).refused(403, "Forbidden")
    newer = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{OWN}.newer", "namespace": "default"},
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "agent",
        "reportingInstance": "agent-1",
        "action": "Observe",
        "reason": "Test",
        "type": "Normal",
        "regarding": reported["involvedObject"],
    }
    collection = "/apis/events.k8s.io/v1/namespaces/default/events"
    admin.post(collection, newer, headers=as_agent(OWN)).expect(201)
    other = {**newer, "regarding": {**reported["involvedObject"], "name": OTHER}}
    other["metadata"] = {"name": f"{OWN}.other", "namespace": "default"}
    admin.post(collection, other, headers=as_agent(OWN)).refused(403, "Forbidden")


def test_an_agent_finds_out_what_is_served(admin: Client) -> None:
    for path in ("/apis", "/apis/clusterregistry.k8s.io/v1beta1", "/openapi/v3", "/version", "/readyz"):
        assert admin.get(path, headers=as_agent(OWN)).status == 200


def test_a_group_without_the_name_is_nobody(admin: Client) -> None:
    headers = {"Impersonate-User": "ann", "Impersonate-Group": AGENTS}
    admin.get(f"{CLUSTERS}/{OWN}", headers=headers).refused(403, "Forbidden")


def test_an_agent_learns_its_rights(admin: Client) -> None:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "group": "clusterregistry.k8s.io",
                "resource": "clusters",
                "verb": "get",
                "name": OWN,
            }
        },
    }
    path = f"{REVIEWS}/selfsubjectaccessreviews"
    assert admin.post(path, review, headers=as_agent(OWN)).expect(201)["status"]["allowed"]
    review["spec"]["resourceAttributes"]["name"] = OTHER  # type: ignore[index]
    answered = admin.post(path, review, headers=as_agent(OWN)).expect(201)["status"]
    assert not answered["allowed"]
    assert answered["denied"]


def test_an_agent_without_a_cluster_renews_nothing(admin: Client) -> None:
    admin.post(CLUSTERS, cluster("brief")).expect(201)
    admin.post(REQUESTS, agent_request("brief"), headers=as_agent("brief")).expect(201)
    admin.delete(f"{CLUSTERS}/brief").expect(200)
    admin.get(f"{CLUSTERS}/brief", headers=as_agent("brief")).refused(404, "NotFound")
    admin.patch(f"{CLUSTERS}/brief/status", status("brief"), headers=as_agent("brief")).refused(404, "NotFound")
    answer = admin.post(REQUESTS, agent_request("brief"), headers=as_agent("brief")).refused(403, "Forbidden")
    assert "join again" in answer["message"]


# Joining members


def test_a_member_creates_its_cluster_with_the_labels_of_its_token(admin: Client) -> None:
    headers = with_token(new_token(admin, "joined", clusterLabels={"env": "edge"}))
    made = admin.post(CLUSTERS, cluster("joined", clusterID="0815"), headers=headers).expect(201)
    assert made["metadata"]["labels"] == {"env": "edge"}
    assert made["metadata"]["annotations"] == {"clusterregistry.k8s.io/observer": "agent"}
    assert admin.get(f"{CLUSTERS}/joined", headers=headers).expect(200)["spec"]["clusterID"] == "0815"
    admin.post(CLUSTERS, cluster("joined"), headers=headers).refused(409, "AlreadyExists")
    admin.delete(f"{CLUSTERS}/joined").expect(200)


ENDPOINTS = {"serverEndpoints": [{"serverAddress": "https://attacker.example.com"}]}
REFUSED_CLUSTERS: dict[str, dict[str, Any]] = {
    "another name": cluster("another"),
    "a label": {**cluster("lone"), "metadata": {"name": "lone", "labels": {"env": "prod"}}},
    "another value": {**cluster("lone"), "metadata": {"name": "lone", "labels": {"tier": "high"}}},
    "an annotation": {
        **cluster("lone"),
        "metadata": {"name": "lone", "annotations": {"clusterregistry.k8s.io/protected": "true"}},
    },
    "a finalizer": {**cluster("lone"), "metadata": {"name": "lone", "finalizers": ["example.com/x"]}},
    "a generated name": {**cluster("lone"), "metadata": {"generateName": "lone"}},
    "fields that another manager has applied": {
        **cluster("lone"),
        "metadata": {
            "name": "lone",
            "managedFields": [
                {
                    "manager": "kubectl",
                    "operation": "Apply",
                    "apiVersion": "clusterregistry.k8s.io/v1beta1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {"f:labels": {"f:tier": {}}}},
                }
            ],
        },
    },
    "more than fits": cluster("lone", cloudProvider={"name": "x" * 70_000}),
    "endpoints": cluster("lone", kubernetesApiEndpoints=ENDPOINTS),
    "credentials of others": cluster(
        "lone", authInfo={"providers": [{"name": "x", "type": "corp", "config": {"key": "y"}}]}
    ),
}


@pytest.mark.parametrize("what", REFUSED_CLUSTERS)
def test_a_member_chooses_nothing_about_its_cluster(admin: Client, what: str) -> None:
    headers = with_token(new_token(admin, "lone", clusterLabels={"tier": "low"}))
    admin.post(CLUSTERS, REFUSED_CLUSTERS[what], headers=headers).refused(403, "Forbidden")


def test_a_member_may_do_nothing_else(admin: Client) -> None:
    headers = with_token(new_token(admin, OWN))
    admin.get(f"{CLUSTERS}/{OWN}", headers=headers).expect(200)
    own = {**cluster(OWN), "metadata": {"name": OWN, "labels": {"env": "prod"}}}
    for method, path, body in (
        ("PUT", f"{CLUSTERS}/{OWN}", own),
        ("PATCH", f"{CLUSTERS}/{OWN}", own),
        ("PATCH", f"{CLUSTERS}/{OWN}/status", status(OWN)),
        ("DELETE", f"{CLUSTERS}/{OWN}", None),
        ("GET", f"{CLUSTERS}/{OTHER}", None),
        ("GET", CLUSTERS, None),
        ("GET", TOKENS, None),
        ("POST", EVENTS, event(OWN)),
        ("POST", REQUESTS, agent_request(OTHER)),
        ("POST", REQUESTS, agent_request(OWN, groups=("devs",))),
    ):
        kind = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        admin.request(method, path, body=body, headers={**headers, **kind}).refused(403, "Forbidden")


def test_a_server_without_rbac_restricts_agents_too(serve: Any) -> None:
    client = serve("--authorization-mode=AlwaysAllow")
    client.post(CLUSTERS, cluster(OWN)).expect(201)
    client.get(CLUSTERS, headers=as_agent(OWN)).refused(403, "Forbidden")
    client.get(f"{CLUSTERS}/{OWN}", headers=as_agent(OWN)).expect(200)
