"""A member and its agent in a network without a route inwards: all of it works by connections outwards."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
import yaml

from tests.agent.namespaces import NetworkNamespace, listening_ports, why_not
from tests.agent.sites import Site, kubeconfig
from tools.ports import free_port
from tools.processes import Process, wait_for

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module", autouse=True)
def _namespaces() -> None:
    if reason := why_not():
        pytest.skip(reason)


def relay_outside(directory: Path, port: int) -> Process:
    """The end of the relay beside the registry."""
    path = directory / "registry.sock"
    words = [sys.executable, "-m", "tests.agent.relay", "from-socket", str(path), str(port)]
    root = str(Path(__file__).parent.parent.parent)
    process = Process(words, log=directory / "outside.log", environ={"PYTHONPATH": root})
    process.start()
    wait_for(path.exists, process.log_end)
    return process


def member_kubeconfig(directory: Path) -> Path:
    """A kubeconfig of the member that the simulator has described."""
    (document,) = yaml.safe_load_all((directory / "clusters.yaml").read_text())
    endpoints = document["spec"]["kubernetesApiEndpoints"]
    (endpoint,) = endpoints["serverEndpoints"]
    address = endpoint["serverAddress"]
    server = address if "://" in address else f"https://{address}"
    token = next((directory / "tokens").iterdir()).read_text()
    path = directory / "member.kubeconfig"
    path.write_text(
        kubeconfig({"server": server, "certificate-authority-data": endpoints["caBundle"]}, {"token": token})
    )
    return path


def test_an_agent_needs_no_way_in(site: Site, capsys: Output, tmp_path: Path) -> None:
    token = site.new_token(capsys, "edge")["token"]
    port, members = site.program.port, free_port()
    outside = relay_outside(tmp_path, port)
    try:
        with NetworkNamespace() as inside:
            relay = inside.start(
                ["tests.agent.relay", "to-socket", str(port), str(tmp_path / "registry.sock")],
                log=tmp_path / "inside.log",
            )
            simulator = inside.start(
                ["tools.simulator", "--members=1", f"--port={members}", f"--write-registry={tmp_path / 'member'}"],
                log=tmp_path / "simulator.log",
            )
            inside.wait_for_port(port, relay)
            inside.wait_for_port(members, simulator)
            known = member_kubeconfig(tmp_path / "member")
            words = site.join_arguments(token, f"--out={tmp_path / 'out'}", f"--member-kubeconfig={known}")
            joined = inside.run(["clusterregistry", *words], environ={"HOME": str(tmp_path)})
            assert joined.returncode == 0, joined.stderr
            agent = inside.start(
                [
                    "clusterregistry",
                    "agent",
                    f"--kubeconfig={tmp_path / 'out' / 'agent.kubeconfig'}",
                    f"--member-kubeconfig={known}",
                    "--interval=1s",
                ],
                log=tmp_path / "agent.log",
            )
            status = site.wait_for_status("edge", lambda status: status.get("state") == "Ready", agent=agent)
            assert status["nodes"]["total"] > 0
            assert listening_ports(agent.pid) == []
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.1.0.1", members), timeout=5).close()
    finally:
        outside.end()
