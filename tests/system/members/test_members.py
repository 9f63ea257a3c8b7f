"""The members themselves: workloads come up, nodes come and go, credentials and certificates are issued."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tests.api.certificates.signing_requests import signing_request
from tests.system.members import members as member_clusters
from tests.system.members.members import RELEASES, Member, Members
from tests.system.members.played_nodes import BEHAVIOR, Behavior, Health
from tools.exchanges import decoded
from tools.processes import Process, ProcessError, wait_for

pytestmark = pytest.mark.e2e


class Workload:
    """A namespace of its own with workloads in it."""

    def __init__(self, member: Member, namespace: str) -> None:
        self.member, self.namespace = member, namespace
        member.create("/api/v1/namespaces", {"metadata": {"name": namespace}})

    def path(self, version: str, plural: str) -> str:
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return f"{root}/namespaces/{self.namespace}/{plural}"

    def deploy(self, name: str, *, replicas: int = 1, behavior: str = "") -> None:
        template = {
            "metadata": {"labels": {"app": name}, "annotations": {BEHAVIOR: behavior} if behavior else {}},
            "spec": {"containers": [{"name": "main", "image": "registry.example.com/main:1"}]},
        }
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        self.member.create(self.path("apps/v1", "deployments"), {"metadata": {"name": name}, "spec": spec})

    def ready(self, name: str) -> int:
        found = self.member.admin.get(f"{self.path('apps/v1', 'deployments')}/{name}") or {}
        return int((found.get("status") or {}).get("readyReplicas", 0))

    def pods(self) -> list[dict[str, Any]]:
        return self.member.admin.items(self.path("v1", "pods"))

    def phases(self) -> Counter[str]:
        return Counter(str(pod["status"].get("phase")) for pod in self.pods())

    def delete(self) -> None:
        """Does not wait for the namespace controller, which gives pods a few seconds."""
        self.member.admin.delete(f"/api/v1/namespaces/{self.namespace}")

    def is_gone(self) -> bool:
        return self.member.admin.get(f"/api/v1/namespaces/{self.namespace}") is None


@pytest.fixture
def workload(members: Members, request: pytest.FixtureRequest) -> Iterator[Workload]:
    name = request.node.name.replace("_", "-").split("[")[0][-60:].strip("-")
    made = Workload(members[0], name)
    yield made
    made.delete()


def test_each_member_is_a_cluster_of_its_own(members: Members) -> None:
    assert len(members) == len(RELEASES)
    systems = {decoded(member.call("GET", "/api/v1/namespaces/kube-system"))["metadata"]["uid"] for member in members}
    assert len(systems) == len(members)
    for member, release in zip(members, RELEASES, strict=True):
        assert decoded(member.call("GET", "/version"))["gitVersion"].startswith(f"v{release}.")
        nodes = [each["metadata"]["name"] for each in member.admin.items("/api/v1/nodes")]
        assert sorted(nodes) == member.nodes


def test_five_pods_of_a_deployment_run_on_the_nodes_and_go_with_their_namespace(workload: Workload) -> None:
    workload.deploy("web", replicas=5)
    wait_for(lambda: workload.ready("web") == 5, workload.member.scheduler.log_end)
    assert workload.phases() == {"Running": 5}
    assert {pod["spec"]["nodeName"] for pod in workload.pods()} == set(workload.member.nodes)
    assert len({pod["status"]["podIP"] for pod in workload.pods()}) == 5
    workload.delete()
    wait_for(workload.is_gone, workload.member.controller_manager.log_end)


def test_a_job_completes(workload: Workload) -> None:
    containers = [{"name": "main", "image": "registry.example.com/main:1"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    jobs = workload.path("batch/v1", "jobs")
    workload.member.create(jobs, {"metadata": {"name": "once"}, "spec": {"template": template}})

    def is_complete() -> bool:
        conditions = (workload.member.admin.get(f"{jobs}/once") or {})["status"].get("conditions", [])
        return any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)

    wait_for(is_complete, workload.member.controller_manager.log_end)


def test_pods_fare_as_their_annotation_says(workload: Workload) -> None:
    workload.deploy("crashing", behavior=Behavior.CRASH_LOOP)
    workload.deploy("waiting", behavior=Behavior.NOT_READY)
    workload.deploy("slow", behavior=Behavior.SLOW)
    wait_for(lambda: workload.ready("slow") == 1)
    wait_for(lambda: workload.phases() == {"Running": 3})
    assert (workload.ready("crashing"), workload.ready("waiting")) == (0, 0)
    (crashing,) = [pod for pod in workload.pods() if pod["metadata"]["labels"]["app"] == "crashing"]
    (container,) = crashing["status"]["containerStatuses"]
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert container["restartCount"] > 0


def test_a_node_that_is_not_ready_gets_no_pods_until_it_is_back(members: Members, workload: Workload) -> None:
    member, (one, other) = workload.member, workload.member.nodes
    members.set_health(member, one, Health.NOT_READY)
    wait_for(lambda: member.nodes_are("False", "True"))
    tainted = f"/api/v1/nodes/{one}"
    wait_for(lambda: bool((member.admin.get(tainted) or {})["spec"].get("taints")))
    workload.deploy("web", replicas=3)
    wait_for(lambda: workload.ready("web") == 3)
    assert {pod["spec"]["nodeName"] for pod in workload.pods()} == {other}
    members.set_health(member, one, Health.READY)
    wait_for(member.takes_pods)
    wait_for(lambda: not (member.admin.get(tainted) or {})["spec"].get("taints"))


def test_a_node_that_falls_silent_is_found_by_the_node_controller(members: Members) -> None:
    member = members[1]
    members.set_health(member, member.nodes[1], Health.SILENT)
    wait_for(lambda: member.nodes_are("True", "Unknown"), member.controller_manager.log_end)
    members.set_health(member, member.nodes[1], Health.READY)
    wait_for(member.takes_pods, member.controller_manager.log_end)


def test_a_member_that_was_killed_comes_back_with_what_it_had(members: Members) -> None:
    member = members[2]
    uid = decoded(member.call("GET", "/api/v1/namespaces/kube-system"))["metadata"]["uid"]
    member.go_away()
    assert all(process.has_ended for process in member.processes)
    member.start()
    assert decoded(member.call("GET", "/api/v1/namespaces/kube-system"))["metadata"]["uid"] == uid
    wait_for(member.takes_pods, member.controller_manager.log_end)


def test_the_token_of_an_observer_reads_what_an_observer_needs_and_nothing_else(members: Members) -> None:
    member, token = members[0], members[0].observer_token()
    for path in ("/readyz", "/version", "/api/v1/nodes", "/api/v1/namespaces/kube-system"):
        assert member.call("GET", path, token=token).status == 200, path
    for path in ("/api/v1/secrets", "/api/v1/namespaces", "/api/v1/namespaces/default", "/api/v1/pods"):
        assert member.call("GET", path, token=token).status == 403, path
    assert member.call("DELETE", f"/api/v1/nodes/{member.nodes[0]}", token=token).status == 403
    assert members[1].call("GET", "/version", token=token).status == 401  # of another cluster


def test_a_signing_request_is_signed_by_the_members_own_authority(members: Members) -> None:
    member, requests = members[0], "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    made = member.create(requests, signing_request("someone"))
    approved = {"type": "Approved", "status": "True", "reason": "Test", "message": "by a test"}
    approval = f"{requests}/someone/approval"
    assert member.call("PUT", approval, {**made, "status": {"conditions": [approved]}}).status == 200

    def certificate() -> str:
        return str((member.admin.get(f"{requests}/someone") or {})["status"].get("certificate", ""))

    wait_for(lambda: bool(certificate()), member.controller_manager.log_end)
    authority = x509.load_pem_x509_certificate(member.users.pem)
    x509.load_pem_x509_certificate(base64.b64decode(certificate())).verify_directly_issued_by(authority)
    member.admin.delete(f"{requests}/someone")


def test_a_start_that_fails_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun: list[Process] = []
    start = Process.start

    def record(process: Process) -> None:
        start(process)
        begun.append(process)

    def fail(member: Member) -> None:
        assert not any(process.has_ended for process in begun)
        raise ProcessError(member.name)

    monkeypatch.setattr(Process, "start", record)
    monkeypatch.setattr(Member, "wait_until_ready", fail)
    with pytest.raises(ProcessError, match="m1"), member_clusters.running(tmp_path, RELEASES[:1]):
        pass
    assert len(begun) == 4
    assert all(process.has_ended for process in begun)
