"""Agents as processes: they observe a member, write its status, and get over the absence of either side."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from clusterregistry.cli import exit_status
from tests.agent.sites import Site
from tests.apiserver.server.programs import Program
from tests.registry.agents.tokens import CLUSTERS
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
    agent.end()
    assert "Traceback" not in agent.logged()


def test_an_agent_renews_its_observations(site: Site, capsys: Output) -> None:
    member = site.simulator[7]
    agent = site.agent(site.join(capsys, "edge", member), member)
    first = site.wait_for_status("edge", lambda status: bool(status.get("observedAt")), agent=agent)["observedAt"]
    site.wait_for_status("edge", lambda status: status["observedAt"] > first, agent=agent)


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
