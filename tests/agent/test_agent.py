"""Agents as processes: they observe a member, write its status, and get over the absence of either side."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.cli import exit_status
from clusterregistry.client.credentials import Credential
from clusterregistry.client.errors import ClientError
from clusterregistry.client.rest import Call
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.sync import SyncClient
from clusterregistry.controllers.controller import Controller, ControllerSettings
from clusterregistry.controllers.observer.credentials import MemberCredential
from clusterregistry.controllers.observer.observation import CredentialInfo
from clusterregistry.controllers.observer.settings import ObserverSettings
from tests.agent.sites import Site
from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.server.programs import Program
from tests.registry.agents.tokens import CLUSTERS, cluster
from tools import exchanges
from tools.ports import free_port
from tools.processes import wait_for
from tools.simulator import Fault, Simulator

Output = pytest.CaptureFixture[str]


def test_an_agent_reports_the_state_of_its_member(site: Site, capsys: Output) -> None:
    member = site.simulator[6]
    agent = site.agent(site.join(capsys, "edge", member), member)
    status = site.wait_for_status("edge", lambda status: status.get("state") == "Ready", agent=agent)
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert (conditions["OK"], conditions["IdentityVerified"], conditions["CredentialsValid"]) == ("True",) * 3
    assert status["version"]["kubernetes"].startswith("v1.")
    assert status["nodes"]["total"] > 0
    member.fault = Fault.NOT_READY
    try:
        site.wait_for_status("edge", lambda status: status["state"] == "Degraded", agent=agent)
    finally:
        member.fault = Fault.NONE
    site.wait_for_status("edge", lambda status: status["state"] == "Ready", agent=agent)
    wait_for(lambda: {"ClusterReady", "ClusterDegraded"} <= site.events("edge"), agent.log_end)
    agent.end()
    assert "Traceback" not in agent.logged()


def test_an_agent_renews_its_observations(site: Site, capsys: Output) -> None:
    member = site.simulator[7]
    agent = site.agent(site.join(capsys, "edge", member), member)
    first = site.wait_for_status("edge", lambda status: bool(status.get("observedAt")), agent=agent)["observedAt"]
    site.wait_for_status("edge", lambda status: status["observedAt"] > first, agent=agent)


def test_an_agent_serves_its_health_where_it_is_told_to(site: Site, capsys: Output) -> None:
    member, port = site.simulator[7], free_port()
    agent = site.agent(site.join(capsys, "edge", member), member, f"--secure-port={port}")
    access = RestConfig(server=f"https://127.0.0.1:{port}", user_agent="test", insecure_skip_tls_verify=True)

    def readiness() -> str:
        try:
            with SyncClient(access) as client:
                return client.exchange(Call("GET", "/readyz")).body.decode()
        except ClientError as error:
            return str(error)

    wait_for(lambda: readiness() == "ok", agent.log_end)
    site.admin.delete(f"{CLUSTERS}/edge").expect(200)
    wait_for(lambda: "there is no cluster edge" in readiness(), agent.log_end)


def test_an_agent_ends_in_order(site: Site, capsys: Output) -> None:
    member = site.simulator[7]
    agent = site.agent(site.join(capsys, "edge", member), member)
    site.wait_for_status("edge", lambda status: status.get("state") == "Ready", agent=agent)
    os.kill(agent.pid, signal.SIGTERM)
    wait_for(lambda: agent.has_ended, agent.log_end)
    assert agent.exit_status() == exit_status.OK
    assert "Traceback" not in agent.logged()


def test_an_agent_gets_over_a_restart_of_the_registry(simulator: Simulator, tmp_path: Path, capsys: Output) -> None:
    member = simulator[8]
    with Program(tmp_path / "registry") as program, Site(program, simulator, tmp_path) as site:
        agent = site.agent(site.join(capsys, "edge", member), member)
        before = site.wait_for_status("edge", lambda status: status.get("state") == "Ready", agent=agent)["observedAt"]
        program.stop()
        site.admin.close()
        program.start()
        site.admin = program.client()
        site.wait_for_status("edge", lambda status: status["observedAt"] > before, agent=agent)


def test_a_deleted_cluster_is_not_made_again_by_its_agent(site: Site, capsys: Output) -> None:
    member = site.simulator[9]
    agent = site.agent(site.join(capsys, "edge", member), member)
    site.wait_for_status("edge", lambda status: status.get("state") == "Ready", agent=agent)
    site.admin.delete(f"{CLUSTERS}/edge").expect(200)
    wait_for(lambda: "was deleted in the registry" in agent.logged(), agent.log_end)
    assert site.admin.get(f"{CLUSTERS}/edge").status == 404
    again = site.join(capsys, "edge", member)  # the same directory: the agent takes the new identity by itself
    assert again.exists()
    site.wait_for_status("edge", lambda status: status.get("state") == "Ready", agent=agent)


def test_the_kubeconfig_must_be_that_of_an_agent(site: Site, capsys: Output) -> None:
    member = site.member_kubeconfig(site.simulator[6])
    flags = [f"--member-kubeconfig={member}", f"--kubeconfig={site.program.data / 'admin.kubeconfig'}"]
    assert site.run("agent", *flags) == exit_status.STARTUP
    assert "not that of an agent" in capsys.readouterr().err
    out = site.join(capsys, "edge")
    capsys.readouterr()
    flags[1] = f"--kubeconfig={out / 'agent.kubeconfig'}"
    assert site.run("agent", *flags, "--cluster=other") == exit_status.STARTUP
    assert "is that of the agent of edge, not of other" in capsys.readouterr().err


def test_an_agent_outside_of_a_pod_needs_a_kubeconfig_of_its_member(site: Site, capsys: Output) -> None:
    out = site.join(capsys, "edge")
    capsys.readouterr()
    assert site.run("agent", f"--kubeconfig={out / 'agent.kubeconfig'}") == exit_status.STARTUP
    assert "--member-kubeconfig" in capsys.readouterr().err
    assert site.run("agent", "--interval=0.1s", "--kubeconfig-secret=x") == exit_status.USAGE


def test_a_controller_leaves_a_cluster_to_its_agent(site: Site, capsys: Output) -> None:
    first, second = site.simulator[10], site.simulator[11]
    site.join(capsys, "edge", first)
    for name, member in (("edge", first), ("plain", second)):
        if name == "plain":
            site.admin.post(CLUSTERS, cluster(name)).expect(201)
        spec = {"kubernetesApiEndpoints": _part(member.cluster(), "kubernetesApiEndpoints")}
        site.admin.patch(f"{CLUSTERS}/{name}", {"spec": spec}).expect(200)
    config = exchanges.access(site.url, ca_file=site.program.authority, token=ADMIN_TOKEN)
    before = len(first.requests)

    async def observe() -> None:
        settings = ControllerSettings(identity="test", election=None, observer=ObserverSettings(interval=1.0))
        work = asyncio.create_task(Controller(config, _Tokens(second.token), settings).run())
        while not site.status("plain"):
            assert not work.done()
            await asyncio.sleep(0.05)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    asyncio.run(observe())
    assert site.status("edge") == {}
    assert len(first.requests) == before


class _Tokens:
    """Access with one token."""

    problem = None

    def __init__(self, token: str) -> None:
        self._token = token

    async def credential(self, _: Any) -> MemberCredential:
        held = Credential(authorization=f"Bearer {self._token}")
        return MemberCredential(credential=held, info=CredentialInfo(source="test"))

    def reject(self, _: Any, __: MemberCredential) -> None:
        pass

    def forget(self, _: str) -> None:
        pass


def _part(document: dict[str, Any], name: str) -> Any:
    return document["spec"][name]
