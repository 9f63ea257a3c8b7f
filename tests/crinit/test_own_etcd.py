"""The three members of etcd that --replicas brings along, with the arguments and certificates of their manifests.

Their names in the host cluster become loopback, a port for each: nothing else of the arguments is changed. The registry
then keeps an object in them, and goes on when one of them is gone.
"""

from __future__ import annotations

import base64
import re
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import clusterregistry
from clusterregistry.crinit import choosing
from clusterregistry.crinit.credentials import making
from clusterregistry.crinit.credentials.material import Material
from clusterregistry.crinit.errors import HostError
from clusterregistry.crinit.host.client import Client
from clusterregistry.crinit.host.kubeconfigs import Access
from clusterregistry.crinit.manifests import everything
from clusterregistry.crinit.settings import Mode
from tests.e2e.processes import Process, wait_for
from tools import programs
from tools.ports import free_ports

CLUSTERS = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"
_SOURCES = Path(clusterregistry.__file__).parent.parent


class Deployed:
    """The processes of a StatefulSet and of a Deployment."""

    def __init__(self, directory: Path) -> None:
        settings = choosing.settings(Mode.STANDALONE, "fleet", {"replicas": "3"})
        wanted = making.Wanted(settings=settings, names=making.serving_names(settings), now=time.time())
        self.material: Material = making.material(wanted, {})
        self._manifests = everything(settings, self.material)
        self._directory = directory
        ports = free_ports(10)
        self.port = ports[9]
        self._clients, self._peers, self._health = ports[:3], ports[3:6], ports[6:9]

    def _pod(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = next(each for each in self._manifests if each["kind"] == kind)
        return dict(found["spec"]["template"]["spec"])

    def _mounted(self, pod: dict[str, Any], member: str) -> dict[str, str]:
        secrets = {each["metadata"]["name"]: each["data"] for each in self._manifests if each["kind"] == "Secret"}
        volumes = {each["name"]: each for each in pod["volumes"]}
        places = {}
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
        ports = {"2379": self._clients, "2380": self._peers}
        argument = re.sub(
            r"fleet-etcd-(\d)\.fleet-etcd\.clusterregistry\.svc:(\d+)",
            lambda found: f"127.0.0.1:{ports[found[2]][int(found[1])]}",
            argument,
        )
        argument = argument.replace("0.0.0.0:2381", f"127.0.0.1:{self._health[number]}")
        for port, chosen in ports.items():
            argument = argument.replace(f"0.0.0.0:{port}", f"127.0.0.1:{chosen[number]}")
        for path, place in places.items():
            argument = argument.replace(f"={path}", f"={place}")
        return argument

    def member(self, number: int) -> list[str]:
        pod = self._pod("StatefulSet")
        places = self._mounted(pod, f"etcd-{number}")
        program = programs.fetch(programs.find("etcd-3.5"))
        return [str(program), *(self._local(each, places, number) for each in pod["containers"][0]["args"])]

    def members_are_healthy(self) -> bool:
        """What the readiness probes of the members ask for."""
        path = self._pod("StatefulSet")["containers"][0]["readinessProbe"]["httpGet"]["path"]
        try:
            for port in self._health:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                    assert answer.status == 200
        except OSError:
            return False
        return True

    def server(self) -> list[str]:
        pod = self._pod("Deployment")
        places = self._mounted(pod, "server")
        arguments = [self._local(each, places) for each in pod["containers"][0]["args"]]
        arguments = [each.replace("--secure-port=8443", f"--secure-port={self.port}") for each in arguments]
        arguments = [each.replace("--bind-address=0.0.0.0", "--bind-address=127.0.0.1") for each in arguments]
        return [sys.executable, "-m", "clusterregistry", "standalone", *arguments]

    def client(self) -> Client:
        assert self.material.admin
        cluster = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority-data": _data(self.material.authority.certificate),
        }
        user = {
            "client-certificate-data": _data(self.material.admin.certificate),
            "client-key-data": _data(self.material.admin.key),
        }
        return Client(Access("fleet", cluster, user, {}))


def _data(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[tuple[Deployed, list[Process]]]:
    made = Deployed(tmp_path)
    with ExitStack() as stack:
        members = [_started(stack, made.member(number), tmp_path / f"etcd-{number}.log") for number in range(3)]
        wait_for(made.members_are_healthy)
        _started(stack, made.server(), tmp_path / "server.log")
        yield made, members


def _started(stack: ExitStack, command: list[str], log: Path) -> Process:
    process = Process(command, log=log, environ={"PYTHONPATH": str(_SOURCES)})
    stack.callback(process.end)
    process.start()
    return process


def test_the_registry_keeps_its_objects_in_its_own_etcd_and_survives_the_loss_of_a_member(
    deployed: tuple[Deployed, list[Process]],
) -> None:
    made, members = deployed
    client = made.client()

    def answers() -> bool:
        try:
            return client.get(CLUSTERS) is not None
        except HostError:
            return False

    wait_for(answers)
    cluster = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "c1"}}
    client.call("POST", CLUSTERS, body=cluster)
    members[0].end()

    def writes() -> bool:
        try:
            client.call(
                "PATCH",
                f"{CLUSTERS}/c1",
                body={"metadata": {"labels": {"a": "b"}}},
                media_type="application/merge-patch+json",
            )
        except HostError:
            return False
        return True

    wait_for(writes)
    assert [each["metadata"]["labels"] for each in client.items(CLUSTERS)] == [{"a": "b"}]
