"""Waiting: until the timeout, through absences of the host, and not for what cannot happen any more."""

from __future__ import annotations

from typing import Any

import pytest

from clusterregistry.crinit.commands import diagnosis, readiness, registration
from clusterregistry.crinit.commands.progress import Patience, Progress
from clusterregistry.crinit.errors import HostError


class Clock:
    """Time that advances only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def patience(seconds: float) -> tuple[Patience, Clock]:
    clock = Clock()
    return Patience(seconds, clock=clock.read, sleep=clock.sleep), clock


def test_waiting_ends_when_the_time_is_over() -> None:
    waits, clock = patience(5)
    assert waits.until(lambda: False) is False
    assert clock.now == 5
    assert waits.until(lambda: clock.now >= 8) is True


def test_a_host_that_is_away_for_a_moment_is_asked_again() -> None:
    waits, clock = patience(10)

    def asked() -> bool:
        if clock.now < 3:
            raise HostError("away", remedy="", status=503 if clock.now else 0)
        return True

    assert waits.until(asked) is True


def test_a_refusal_is_not_waited_for() -> None:
    waits, _ = patience(10)

    def asked() -> bool:
        raise HostError("no", remedy="", status=403)

    with pytest.raises(HostError):
        waits.until(asked)


def test_a_step_tells_how_long_it_took_also_when_it_fails() -> None:
    said: list[str] = []
    clock = Clock()
    progress = Progress(said.append, clock=clock.read)
    with progress.step("Service s") as outcome:
        clock.sleep(1.25)
        outcome.text = "created"
    with pytest.raises(ValueError, match="why"), progress.step("Secret s"):
        raise ValueError("why")
    assert said == ["Service s: created (1.2s)", "Secret s: failed (0.0s)"]


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}, True),
        ({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}, False),
        ({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "readyReplicas": 2}, False),
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "readyReplicas": 2}, False),
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1}, False),
        ({}, False),
    ],
)
def test_a_workload_is_ready_when_all_pods_are_new_and_ready(status: dict[str, int], ready: bool) -> None:  # noqa: FBT001
    workload = {"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status}
    assert readiness.is_ready(workload) is ready


def test_a_first_failure_to_pull_is_no_reason_to_give_up() -> None:
    def pod(reason: str) -> dict[str, object]:
        return {"status": {"containerStatuses": [{"state": {"waiting": {"reason": reason, "message": "m"}}}]}}

    assert diagnosis.hopeless([pod("ErrImagePull"), pod("ContainerCreating"), {}]) == ""
    assert diagnosis.hopeless([pod("ErrImagePull"), pod("ImagePullBackOff")]) == "ImagePullBackOff: m"


def container(code: int, *, restarts: int, name: str = "clusterregistry") -> dict[str, Any]:
    ended = {"terminated": {"exitCode": code}}
    status = {"name": name, "restartCount": restarts, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    return {"status": {"containerStatuses": [{**status, "lastState": ended}]}}


def test_a_server_that_refuses_its_arguments_is_not_waited_for() -> None:
    assert "does not accept its arguments" in diagnosis.hopeless([container(2, restarts=1)])
    assert diagnosis.hopeless([container(2, restarts=1, name="etcd")]) == ""


def test_a_server_that_ends_is_given_some_time_before_that_counts() -> None:
    assert diagnosis.hopeless([container(3, restarts=3)]) == ""
    said = diagnosis.hopeless([container(3, restarts=4)])
    assert said == "the container clusterregistry has ended 4 times, last with status 3"


def test_pods_of_a_former_run_do_not_count() -> None:
    def pod(*arguments: str, **described: str) -> dict[str, Any]:
        containers = [{"image": "i", "command": ["c"], "args": list(arguments), "volumeMounts": [len(described)]}]
        return {"metadata": described, "spec": {"containers": containers}}

    wanted = pod("--v=1", name="new")
    workload = {"spec": {"template": {"spec": wanted["spec"]}}}
    found = [pod("--w=1", name="old"), pod("--v=1", name="going", deletionTimestamp="now"), wanted]
    assert diagnosis.current(found, workload) == [wanted]


def test_an_image_that_does_not_serve_a_version_is_told_from_a_host_that_does_not_reach_it() -> None:
    url = "https://10.0.0.1:443/apis/clusterregistry.k8s.io/v1beta1"
    failing = f"FailedDiscoveryCheck: failing or missing response from {url}: "
    assert "does not serve v1beta1: name an image" in registration.remedy_of(
        "v1beta1", f"{failing}bad status from {url}: 404"
    )
    for message in (f"{failing}bad status from {url}: 503", f"{failing}Get {url}: context deadline exceeded"):
        assert "is the aggregation layer enabled" in registration.remedy_of("v1beta1", message)
