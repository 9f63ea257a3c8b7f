"""What a person has at hand who joins members: kubeconfigs, the commands, and agents as processes."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import yaml

import clusterregistry
from clusterregistry.registry.main import main
from tests.apiserver.api.over_tls import OverTLS
from tests.apiserver.server.programs import Program
from tests.registry.agents.tokens import CLUSTERS, EVENTS
from tools.processes import Process, wait_for
from tools.simulator import Simulator
from tools.simulator.member import SimulatedMember

_SOURCES = Path(clusterregistry.__file__).parent.parent


class Site:
    """The registry and its members. ``admin`` is the administrator's client."""

    def __init__(self, program: Program, simulator: Simulator | None, directory: Path) -> None:
        """``simulator`` has the members; None: they are real."""
        self.program, self._simulator, self.directory = program, simulator, directory
        self.environ = {"KUBECONFIG": str(program.data / "admin.kubeconfig"), "HOME": str(directory)}
        self.url = f"https://127.0.0.1:{program.port}"
        self.admin: OverTLS = program.client()
        self._agents: list[Process] = []

    @property
    def simulator(self) -> Simulator:
        assert self._simulator is not None
        return self._simulator

    def run(self, *words: str, environ: Mapping[str, str] | None = None) -> int:
        """Runs a command in this process, and returns its exit status."""
        return main(words, {**self.environ, **(environ or {})})

    def member_kubeconfig(self, member: SimulatedMember) -> Path:
        path = self.directory / f"{member.name}.kubeconfig"
        cluster = {"server": member.url, "certificate-authority-data": _data(member.identity.authority)}
        path.write_text(kubeconfig(cluster, {"token": member.token}))
        path.chmod(0o600)
        return path

    def new_token(self, capsys: Any, cluster: str, *flags: str) -> dict[str, Any]:
        """Makes a token by the command: what it prints for programs."""
        capsys.readouterr()
        assert self.run("join-token", "create", cluster, "-o", "json", *flags) == 0
        made: dict[str, Any] = json.loads(capsys.readouterr().out)
        return made

    def join_arguments(self, token: str, *flags: str) -> list[str]:
        return ["join", f"--server={self.url}", f"--token={token}", f"--ca-file={self.program.authority}", *flags]

    def join(self, capsys: Any, cluster: str, member: SimulatedMember | None = None, *flags: str) -> Path:
        """Makes a token and joins with it; returns the directory of the agent."""
        token = self.new_token(capsys, cluster)["token"]
        out = self.directory / f"{cluster}-agent"
        known = f"--member-kubeconfig={self.member_kubeconfig(member)}" if member else "--without-member"
        words = self.join_arguments(token, f"--out={out}", known, *flags)
        assert self.run(*words) == 0, capsys.readouterr().err
        return out

    def agent(self, directory: Path, member: SimulatedMember, *flags: str) -> Process:
        """Starts an agent as a process of its own."""
        return self.agent_with(directory, self.member_kubeconfig(member), *flags)

    def agent_with(self, directory: Path, member: Path, *flags: str) -> Process:
        """The same with a kubeconfig of the member."""
        kubeconfigs = [f"--kubeconfig={directory / 'agent.kubeconfig'}", f"--member-kubeconfig={member}"]
        process = Process(
            [sys.executable, "-m", "clusterregistry", "agent", *kubeconfigs, "--interval=1s", *flags],
            log=directory / "agent.log",
            environ={"PYTHONPATH": str(_SOURCES)},
        )
        self._agents.append(process)
        process.start()
        return process

    def cluster(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.get(f"{CLUSTERS}/{name}").expect(200)
        return found

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster(name).get("status") or {}
        return found

    def events(self, name: str) -> set[str]:
        """The reasons of the events about a cluster."""
        found = self.admin.get(EVENTS, fieldSelector=f"involvedObject.name={name}").expect(200)["items"]
        return {each["reason"] for each in found}

    def wait_for_status(self, name: str, holds: Callable[[dict[str, Any]], bool], *, agent: Process) -> dict[str, Any]:
        """Waits until the status of a cluster is as wanted."""
        wait_for(lambda: holds(self.status(name)), lambda: f"{self.status(name)}\n{agent.log_end()}")
        return self.status(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._agents:
            process.end()
        for name in (each["metadata"]["name"] for each in self.admin.get(CLUSTERS).expect(200)["items"]):
            self.admin.delete(f"{CLUSTERS}/{name}")
        self.admin.close()


def kubeconfig(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": dict(cluster)}],
            "users": [{"name": "u", "user": dict(user)}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


def _data(content: bytes) -> str:
    return base64.b64encode(content).decode()
