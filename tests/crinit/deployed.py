"""The pods of a registry as local processes, with the arguments, certificates and probes of their manifests.

Their names in the host cluster become loopback, a port for each: nothing else of the arguments is changed.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import clusterregistry
from clusterregistry.crinit import settings_from_flags
from clusterregistry.crinit.credentials import issuance
from clusterregistry.crinit.credentials.material import Material, Pair
from clusterregistry.crinit.errors import HostError
from clusterregistry.crinit.host.client import Client
from clusterregistry.crinit.host.kubeconfigs import Access
from clusterregistry.crinit.manifests import everything
from clusterregistry.crinit.settings import Mode
from tools import programs
from tools.ports import free_ports
from tools.processes import Process, wait_for

CLUSTERS = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"
_SOURCES = Path(clusterregistry.__file__).parent.parent
_NAMES = re.compile(r"fleet-etcd-(\d)\.fleet-etcd\.clusterregistry\.svc:(\d+)")


class Deployed:
    """The processes of a Deployment, and of a StatefulSet where there is one."""

    def __init__(self, directory: Path, given: dict[str, str]) -> None:
        settings = settings_from_flags.settings(Mode.STANDALONE, "fleet", given)
        wanted = issuance.Wanted(settings=settings, names=issuance.serving_names(settings), now=time.time())
        self.material: Material = issuance.material(wanted, {})
        self._manifests = everything(settings, self.material)
        self._directory = directory
        self._places: dict[str, dict[str, str]] = {}
        ports = free_ports(7)
        self.port = ports[6]
        self._ports = {"2379": ports[:3], "2380": ports[3:6]}

    @property
    def volume(self) -> Path:
        """Where the server keeps its data."""
        return self._directory / "server" / "data"

    @property
    def log(self) -> Path:
        return self._directory / "server.log"

    def _pod(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = next(each for each in self._manifests if each["kind"] == kind)
        return dict(found["spec"]["template"]["spec"])

    def _mounted(self, pod: dict[str, Any], member: str) -> dict[str, str]:
        if member in self._places:
            return self._places[member]
        secrets = {each["metadata"]["name"]: each["data"] for each in self._manifests if each["kind"] == "Secret"}
        volumes = {each["name"]: each for each in pod["volumes"]}
        places = self._places[member] = {}
        for mount in pod["containers"][0]["volumeMounts"]:
            place = self._directory / member / mount["name"]
            place.mkdir(parents=True, mode=0o700)
            if "secret" in volumes.get(mount["name"], {}):
                for name, data in secrets[volumes[mount["name"]]["secret"]["secretName"]].items():
                    (place / name).write_bytes(base64.b64decode(data))
            places[mount["mountPath"]] = str(place)
        return places

    def _local(self, argument: str, places: dict[str, str], number: int = 0) -> str:
        argument = argument.replace("$(POD_NAME)", f"fleet-etcd-{number}")
        argument = _NAMES.sub(lambda found: f"127.0.0.1:{self._ports[found[2]][int(found[1])]}", argument)
        for port, chosen in self._ports.items():
            argument = re.sub(rf"(0\.0\.0\.0|127\.0\.0\.1):{port}\b", f"127.0.0.1:{chosen[number]}", argument)
        # At most one of them: a place may itself be in a directory that is the name of another mount.
        paths = "|".join(map(re.escape, places))
        return re.sub(rf"(?<![^=])({paths})(?=/|$)", lambda found: places[found[1]], argument)

    def member(self, number: int) -> list[str]:
        pod = self._pod("StatefulSet")
        places = self._mounted(pod, f"etcd-{number}")
        program = programs.fetch(programs.find("etcd-3.5"))
        return [str(program), *(self._local(each, places, number) for each in pod["containers"][0]["args"])]

    def probe(self, name: str, number: int) -> subprocess.CompletedProcess[str]:
        """Runs a probe of a member as the kubelet does: its command, in the environment of its container."""
        container = self._pod("StatefulSet")["containers"][0]
        places = self._mounted(self._pod("StatefulSet"), f"etcd-{number}")
        given = {each["name"]: each["value"] for each in container["env"] if "value" in each}
        environ = {name: self._local(value, places, number) for name, value in given.items()}
        program, *arguments = container[name]["exec"]["command"]
        assert program == "etcdctl"
        command = [str(programs.fetch(programs.find("etcdctl-3.5"))), *arguments]
        seconds = container[name]["timeoutSeconds"]
        try:
            return subprocess.run(
                command, env={"PATH": os.environ["PATH"], **environ}, capture_output=True, text=True, timeout=seconds,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, -1, "", f"it took more than {seconds} s")

    def members_are(self, probe: str, *numbers: int) -> bool:
        return all(self.probe(probe, number).returncode == 0 for number in numbers)

    def server(self) -> list[str]:
        pod = self._pod("Deployment")
        places = self._mounted(pod, "server")
        arguments = [self._local(each, places) for each in pod["containers"][0]["args"]]
        arguments = [each.replace("--secure-port=8443", f"--secure-port={self.port}") for each in arguments]
        arguments = [each.replace("--bind-address=0.0.0.0", "--bind-address=127.0.0.1") for each in arguments]
        return [sys.executable, "-m", "clusterregistry", "standalone", *arguments]

    def client(self, user: Pair | None = None) -> Client:
        """As the administrator by default."""
        shown = user or self.material.admin
        assert shown
        cluster = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority-data": _data(self.material.authority.certificate),
        }
        credentials = {
            "client-certificate-data": _data(shown.certificate),
            "client-key-data": _data(shown.key),
        }
        return Client(Access("fleet", cluster, credentials, {}))

    def start_member(self, stack: ExitStack, number: int) -> Process:
        return _started(stack, self.member(number), self._directory / f"etcd-{number}.log")

    def start_server(self, stack: ExitStack) -> Client:
        """A client of a server that answers."""
        process = _started(stack, self.server(), self.log)
        client = self.client()

        def answers() -> bool:
            try:
                return client.get(CLUSTERS) is not None
            except HostError:
                return False

        process.wait_until(answers)
        return client


def _data(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _started(stack: ExitStack, command: list[str], log: Path) -> Process:
    process = Process(command, log=log, environ={"PYTHONPATH": str(_SOURCES)})
    stack.callback(process.end)
    process.start()
    return process


def all_healthy(made: Deployed) -> None:
    wait_for(lambda: made.members_are("readinessProbe", 0, 1, 2))
