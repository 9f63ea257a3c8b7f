"""Each step of crinit that fails says what a person can do, and leaves nothing half-written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.crinit import settings_from_flags
from clusterregistry.crinit.commands import apply, dry_run
from clusterregistry.crinit.commands.progress import Progress
from clusterregistry.crinit.errors import HostError
from clusterregistry.crinit.host.client import path_to
from clusterregistry.crinit.main import main
from clusterregistry.crinit.manifests import secrets
from clusterregistry.crinit.settings import Mode
from tests.system.e2e.host_clusters import ADMIN, NOBODY, HostCluster
from tests.system.e2e.processes import wait_for

pytestmark = pytest.mark.e2e

NODE_PORT = ["--api-server-service-type=NodePort", "--api-server-advertise-address=127.0.0.1"]


class Attempt:
    """One init that fails."""

    def __init__(self, kubeconfig: Path, namespace: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._kubeconfig, self._namespace, self._capsys = kubeconfig, namespace, capsys
        self._before = kubeconfig.read_bytes() if kubeconfig.exists() else None

    def complaint(self, *flags: str, mode: str = "standalone", name: str = "fleet") -> str:
        where = [f"--kubeconfig={self._kubeconfig}", f"--cluster-registry-namespace={self._namespace}"]
        where.append("--host-cluster-context=host")
        assert main([mode, "init", name, *where, *flags], {}) == 3
        said = self._capsys.readouterr().err
        assert "Traceback" not in said
        assert "What to do: " in said
        if self._before is not None:
            assert self._kubeconfig.read_bytes() == self._before
            assert [each.name for each in self._kubeconfig.parent.iterdir()] == [self._kubeconfig.name]
        return said


@pytest.fixture
def attempt(kubeconfig: Path, namespace: str, capsys: pytest.CaptureFixture[str]) -> Attempt:
    return Attempt(kubeconfig, namespace, capsys)


def test_a_context_that_is_not_there_is_named_with_those_that_are(attempt: Attempt) -> None:
    said = attempt.complaint("--host-cluster-context=hots")
    assert 'the kubeconfig has no context "hots"; there are: host' in said


def test_a_host_that_cannot_be_reached_is_named(
    host: HostCluster, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = host.kubeconfig(tmp_path / "config")
    kubeconfig.write_text(kubeconfig.read_text().replace(str(host.port), "1"))
    said = Attempt(kubeconfig, namespace, capsys).complaint()
    assert "https://127.0.0.1:1 cannot be reached" in said
    assert "Nothing was made in this run." in said


def test_somebody_without_rights_is_told_which_one_is_missing(
    host: HostCluster, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Attempt(host.kubeconfig(tmp_path / "config", NOBODY), namespace, capsys).complaint()
    assert 'User "mallory" cannot get resource "configmaps"' in said
    assert "ask an administrator of the host cluster for this right" in said
    assert "Nothing was made in this run." in said


def test_a_namespace_that_is_being_deleted_is_waited_for_by_the_user(
    host: HostCluster, namespace: str, attempt: Attempt
) -> None:
    host.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    host.admin.delete(f"/api/v1/namespaces/{namespace}")
    said = attempt.complaint()
    assert f"the namespace {namespace} is being deleted" in said
    assert "Nothing was made in this run." in said


def test_a_quota_that_refuses_an_object_is_told_with_what_was_made_and_how_to_clean_up(
    host: HostCluster, namespace: str, attempt: Attempt
) -> None:
    host.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    hard = {"persistentvolumeclaims": "0"}
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    host.create(quotas, {"metadata": {"name": "none"}, "spec": {"hard": hard}})
    host.merge(f"{quotas}/none/status", {"status": {"hard": hard, "used": hard}})

    wait_for(lambda: _is_refused(host, namespace))
    said = attempt.complaint(*NODE_PORT)
    assert "exceeded quota: none" in said
    assert "raise the ResourceQuota" in said
    assert f"Service {namespace}/fleet" in said
    assert "To clean up: crinit standalone delete fleet --host-cluster-context=host" in said


def _is_refused(host: HostCluster, namespace: str) -> bool:
    """kube-apiserver learns of a quota by a watch, a moment after it was made."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    try:
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        host.admin.call("POST", path, query={"dryRun": "All"}, body={"metadata": {"name": "try"}, "spec": spec})
    except HostError as error:
        return error.status == 403
    return False


def test_pods_that_a_quota_refuses_are_not_waited_for(host: HostCluster, namespace: str, attempt: Attempt) -> None:
    refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: pods"}
    with _beside(lambda: _set_status(host, namespace, {"conditions": [refused]})):
        said = attempt.complaint(*NODE_PORT, "--timeout=60s")
    assert "do not come up: exceeded quota: pods" in said


def test_an_image_that_cannot_be_pulled_is_told_with_the_pods_events(
    host: HostCluster, namespace: str, attempt: Attempt
) -> None:
    with _beside(lambda: _fail_to_pull(host, namespace)):
        said = attempt.complaint(*NODE_PORT, "--timeout=60s", "--image=registry.example.com/nope:1")
    assert "ImagePullBackOff: Back-off pulling image" in said
    assert "Pod fleet-1: Failed: no such image" in said
    assert "name another: --image=IMAGE" in said


def test_a_load_balancer_that_never_comes_is_not_waited_for_ever(attempt: Attempt, namespace: str) -> None:
    said = attempt.complaint("--timeout=1s")
    assert "the load balancer of the service fleet has no address after 1s" in said
    assert "--api-server-service-type=NodePort" in said
    assert f"Service {namespace}/fleet" in said


def test_a_kubeconfig_that_cannot_be_written_is_found_before_anything_is_made(
    host: HostCluster, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Root may write anywhere, but not even root can make a file beside one with so long a name.
    kubeconfig = host.kubeconfig(tmp_path / ("c" * 250))
    said = Attempt(kubeconfig, namespace, capsys).complaint()
    assert f"the kubeconfig {kubeconfig} cannot be written: File name too long" in said
    assert "Nothing was made in this run." in said
    assert host.admin.get(f"/api/v1/namespaces/{namespace}") is None


def test_a_kubeconfig_that_another_program_is_writing_is_left_alone(
    host: HostCluster, namespace: str, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = kubeconfig.read_bytes()
    kubeconfig.with_name("config.lock").touch()
    where = [f"--kubeconfig={kubeconfig}", f"--cluster-registry-namespace={namespace}", "--host-cluster-context=host"]
    with _beside(lambda: _set_status(host, namespace, {"readyReplicas": 1, "updatedReplicas": 1, "replicas": 1})):
        assert main(["standalone", "init", "fleet", *where, *NODE_PORT], {}) == 3
    said = capsys.readouterr().err
    assert f"another program is changing {kubeconfig}" in said
    assert f"Deployment {namespace}/fleet" in said
    assert kubeconfig.read_bytes() == before


def test_a_name_that_the_kubeconfig_has_already_is_refused(attempt: Attempt) -> None:
    said = attempt.complaint(name="host")
    assert 'has a cluster "host" that crinit did not make' in said


def test_what_somebody_else_made_is_never_taken_over(host: HostCluster, namespace: str, attempt: Attempt) -> None:
    host.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    spec = {"ports": [{"port": 80}]}
    host.create(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "fleet"}, "spec": spec})
    said = attempt.complaint(*NODE_PORT)
    assert f"Service {namespace}/fleet is there already, and somebody else made it" in said


def test_two_runs_at_once_do_not_make_two_authorities(
    host: HostCluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    settings = settings_from_flags.settings(Mode.STANDALONE, "fleet", {"cluster-registry-namespace": namespace})
    first, second = (
        next(each for each in dry_run.offline(Mode.STANDALONE, "fleet", {"cluster-registry-namespace": namespace})
             if each["metadata"]["name"] == secrets.name_of(settings, secrets.AUTHORITY))
        for _ in range(2)
    )  # fmt: skip
    progress = Progress(lambda _: None)
    apply.apply(host.admin, progress, first)
    # The second run has looked before the first one was done.
    late = host.client(ADMIN)
    monkeypatch.setattr(late, "get", lambda _: None)
    with pytest.raises(OperatorError, match="was made by somebody else at the same moment"):
        apply.apply(late, progress, second)
    assert (host.admin.get(path_to(first)) or {})["data"] == first["data"]


def test_flags_that_would_leave_the_data_behind_are_refused(attempt: Attempt) -> None:
    attempt.complaint("--timeout=1s")
    said = attempt.complaint("--timeout=1s", "--replicas=3")
    assert '"fleet" keeps its objects in sqlite; these flags would start it empty on own-etcd' in said


def test_a_name_in_use_by_the_other_mode_is_refused(attempt: Attempt) -> None:
    attempt.complaint("--timeout=1s")
    assert '"fleet" is there already, deployed as standalone' in attempt.complaint(mode="aggregated")


@contextmanager
def _beside(act: Any) -> Iterator[None]:
    """Runs while crinit waits, as the host's controllers and kubelets do."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    yield
    thread.join(90)


def _deployment(host: HostCluster, namespace: str) -> dict[str, Any]:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/fleet"
    wait_for(lambda: host.admin.get(path) is not None)
    return host.admin.get(path) or {}


def _set_status(host: HostCluster, namespace: str, status: dict[str, Any]) -> None:
    generation = _deployment(host, namespace)["metadata"]["generation"]
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/fleet/status"
    host.merge(path, {"status": {**status, "observedGeneration": generation}})


def _fail_to_pull(host: HostCluster, namespace: str) -> None:
    template = _deployment(host, namespace)["spec"]["template"]
    pods = f"/api/v1/namespaces/{namespace}/pods"
    event = {
        "metadata": {"name": "fleet-1.pull"},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "fleet-1"},
        "reason": "Failed",
        "message": "no such image",
    }
    host.create(f"/api/v1/namespaces/{namespace}/events", event)
    host.create(pods, {"metadata": {**template["metadata"], "name": "fleet-1"}, "spec": template["spec"]})
    waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
    image = template["spec"]["containers"][0]["image"]
    status = {"name": "clusterregistry", "ready": False, "restartCount": 0, "image": image, "imageID": ""}
    host.merge(f"{pods}/fleet-1/status", {"status": {"containerStatuses": [{**status, "state": {"waiting": waiting}}]}})
