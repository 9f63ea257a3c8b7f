"""A status controller and real member clusters, three at once: the registry shows what becomes of them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.api.over_tls import OverTLS
from tests.apiserver.server.programs import Program
from tests.controllers.fleets import ControllerProcess
from tests.system.members.members import OBSERVERS, Member, Members
from tests.system.members.played_nodes import Health
from tools.processes import wait_for

pytestmark = pytest.mark.e2e

_CLUSTERS = "/apis/clusterregistry.k8s.io/v1beta1/clusters"
_QUICK = ("--interval=3s", "--node-interval=3s", "--probe-timeout=3s")


class Observed:
    """The members as a registry shows them."""

    def __init__(self, directory: Path, members: Members) -> None:
        self.members, self._tokens = members, directory / "tokens"
        self._tokens.mkdir()
        (directory / "members").mkdir()
        rules = [{"match": {}, "use": {"file": {"directory": str(self._tokens)}}}]
        access = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "AccessConfiguration", "rules": rules}
        (directory / "members" / "access.yaml").write_text(yaml.safe_dump(access))
        self.program = Program(directory / "registry")
        self.program.start()
        self.registry: OverTLS = self.program.client()
        for member in members:
            self.give_token(member)
            assert self.registry.post(_CLUSTERS, _cluster(member)).status == 201
        self.controller = ControllerProcess(directory / "controller", self.program, *_QUICK)
        self.controller.process.start()

    def give_token(self, member: Member) -> None:
        """A new credential of the controller for a member."""
        file = self._tokens / f"{member.name}.token"
        file.touch(mode=0o600)
        file.write_text(member.observer_token())

    def status(self, member: Member) -> dict[str, Any]:
        found: dict[str, Any] = self.registry.get(f"{_CLUSTERS}/{member.name}").json.get("status", {})
        return found

    def is_shown(self, member: Member, state: str, reason: str) -> bool:
        status = self.status(member)
        conditions = {each["type"]: each for each in status.get("conditions", ())}
        return (status.get("state"), conditions.get("OK", {}).get("reason")) == (state, reason)

    def wait_shown(self, member: Member, state: str, reason: str) -> None:
        wait_for(lambda: self.is_shown(member, state, reason), lambda: f"{self.status(member)}\n{self._log()}")

    def _log(self) -> str:
        return self.controller.process.log_end()

    def end(self) -> None:
        self.controller.process.end()
        self.registry.close()
        self.program.end()


def _cluster(member: Member) -> dict[str, Any]:
    endpoints = {
        "serverEndpoints": [{"clientCIDR": "0.0.0.0/0", "serverAddress": member.url}],
        "caBundle": base64.b64encode(member.serving.pem).decode(),
    }
    return {
        "apiVersion": "clusterregistry.k8s.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": member.name},
        "spec": {"kubernetesApiEndpoints": endpoints},
    }


@pytest.fixture(scope="module")
def observed(members: Members, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    made = Observed(tmp_path_factory.mktemp("observed"), members)
    try:
        for member in members:
            made.wait_shown(member, "Ready", "Ready")
        yield made
    finally:
        made.end()


def test_each_member_is_ready_with_what_it_is(observed: Observed) -> None:
    for member in observed.members:
        status = observed.status(member)
        assert status["version"]["kubernetes"].startswith(f"v{member.release}.")
        assert status["nodes"] == {"total": 2, "ready": 2}
        assert int(status["capacity"]["cpu"]) > 0
        system = member.admin.get("/api/v1/namespaces/kube-system") or {}
        properties = {each["name"]: each["value"] for each in status["properties"]}
        assert properties["clusterregistry.k8s.io/kube-system-uid"] == system["metadata"]["uid"]


def test_a_node_that_is_not_ready_makes_its_member_degraded_and_no_other(observed: Observed) -> None:
    member, *others = observed.members
    observed.members.set_health(member, member.nodes[0], Health.NOT_READY)
    observed.wait_shown(member, "Degraded", "NotReady")
    assert observed.status(member)["nodes"] == {"total": 2, "ready": 1}
    assert all(observed.is_shown(other, "Ready", "Ready") for other in others)
    observed.members.set_health(member, member.nodes[0], Health.READY)
    observed.wait_shown(member, "Ready", "Ready")
    wait_for(member.takes_pods)


def test_a_member_that_is_killed_is_unreachable_until_it_is_back(observed: Observed) -> None:
    member = observed.members[1]
    member.go_away()
    observed.wait_shown(member, "Unreachable", "ConnectionRefused")
    assert observed.status(member)["version"]["kubernetes"].startswith("v")  # what was known stays
    member.start()
    wait_for(member.takes_pods, member.controller_manager.log_end)
    observed.wait_shown(member, "Ready", "Ready")


def test_a_revoked_credential_is_told_and_a_new_one_is_taken(observed: Observed) -> None:
    member = observed.members[2]
    member.revoke_observer()
    observed.wait_shown(member, "Denied", "Unauthorized")
    namespace = f"/api/v1/namespaces/{OBSERVERS}"
    wait_for(lambda: member.admin.get(namespace) is None, member.controller_manager.log_end)
    observed.give_token(member)
    observed.wait_shown(member, "Ready", "Ready")


def test_transitions_are_events_of_the_cluster(observed: Observed) -> None:
    found = observed.registry.get("/apis/events.k8s.io/v1/namespaces/default/events").json["items"]
    regarding = {(each["regarding"]["kind"], each["regarding"]["name"], each["reason"]) for each in found}
    for member in observed.members:
        assert ("Cluster", member.name, "ClusterReady") in regarding
