"""A real registry over TLS, simulated members, and controllers as processes of their own, with their least rights."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from clusterregistry.api.clusterregistry.v1beta1 import conversion
from clusterregistry.apimachinery import certificates
from clusterregistry.client.rest import Call, Client, GroupVersionResource, Object, ResourceClient, items
from clusterregistry.client.rest_config import Pem, RestConfig
from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.server.programs import Program
from tools.live_server import installed_command
from tools.ports import free_port
from tools.processes import Process
from tools.simulator import Simulator

PATIENCE = 90.0
USER = "system:clusterregistry:controller"
CLUSTERS = GroupVersionResource("clusterregistry.k8s.io", "v1beta1", "clusters")
EVENTS = GroupVersionResource("events.k8s.io", "v1", "events")
LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
LEASE = "clusterregistry-controller"
QUICK = ("--interval=2s", "--node-interval=2s", "--probe-timeout=1500ms")


def client_certificate(program: Program, user: str) -> tuple[bytes, bytes]:
    """A client certificate of the registry's own authority, and its key."""
    key = load_pem_private_key((program.data / "ca.key").read_bytes(), password=None)
    assert isinstance(key, certificates.Key)
    authority = certificates.Authority(x509.load_pem_x509_certificate((program.data / "ca.crt").read_bytes()), key)
    own = certificates.new_key()
    made = certificates.client_certificate(authority, own, user=user, group="", now=time.time())
    return made, certificates.key_pem(own)


def config_of(program: Program, **user: Any) -> RestConfig:
    """Access to the registry; without keywords as an administrator."""
    return RestConfig(
        server=f"https://127.0.0.1:{program.port}",
        user_agent="tests",
        certificate_authority=Pem(file=program.authority),
        **(user or {"token": ADMIN_TOKEN}),
    )


def controller_config(program: Program) -> RestConfig:
    certificate, key = client_certificate(program, USER)
    return config_of(program, client_certificate=Pem(data=certificate), client_key=Pem(data=key))


class ControllerProcess:
    """``clusterregistry controller`` with the certificate that crinit issues for it."""

    def __init__(self, directory: Path, program: Program, *flags: str) -> None:
        directory.mkdir()
        certificate, key = client_certificate(program, USER)
        (directory / "client.crt").write_bytes(certificate)
        (directory / "client.key").write_bytes(key)
        self.port = free_port()
        (directory / "kubeconfig").write_text(json.dumps(self._kubeconfig(program)))
        command = [*installed_command(), "controller", f"--kubeconfig={directory / 'kubeconfig'}"]
        command += [f"--access-config={directory.parent / 'members' / 'access.yaml'}", f"--secure-port={self.port}"]
        self.process = Process([*command, *flags], log=directory / "controller.log")

    def _kubeconfig(self, program: Program) -> dict[str, Any]:
        cluster = {"server": f"https://127.0.0.1:{program.port}", "certificate-authority": str(program.authority)}
        return {
            "clusters": [{"name": "registry", "cluster": cluster}],
            "users": [{"name": "own", "user": {"client-certificate": "client.crt", "client-key": "client.key"}}],
            "contexts": [{"name": "own", "context": {"cluster": "registry", "user": "own"}}],
            "current-context": "own",
        }

    async def get(self, path: str) -> tuple[int, str]:
        """Status and text of a path of its health server; 0 while nothing listens."""
        config = RestConfig(server=f"https://127.0.0.1:{self.port}", user_agent="tests", insecure_skip_tls_verify=True)
        async with Client(config) as client:
            try:
                response = await client.exchange(Call("GET", path))
            except Exception:  # noqa: BLE001 - not yet, or no more
                return 0, ""
            return response.status, response.body.decode()

    async def wait_ready(self) -> None:
        await until(self.is_ready, self.process.log_end)

    async def is_ready(self) -> bool:
        assert not self.process.has_ended, self.process.log_end()
        return (await self.get("/readyz"))[0] == 200


def with_members(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test on the loop that simulated members need: asyncio's own goes on writing to clients that are gone."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(test(*arguments, **named))

    return run


async def until(holds: Callable[[], Any], otherwise: Callable[[], object] = lambda: "") -> Any:
    """Waits for something, and returns it. ``holds`` may return an awaitable."""
    end = time.monotonic() + PATIENCE
    while True:
        found = holds()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < end, f"waited for {PATIENCE:g} s: {otherwise()}"
        await asyncio.sleep(0.05)


class Fleet:
    """A registry with the clusters of simulated members, an administrator's client, and controllers."""

    def __init__(self, directory: Path, program: Program, simulator: Simulator, clusters: ResourceClient) -> None:
        self.directory, self.program, self.simulator = directory, program, simulator
        self.clusters, self.client = clusters, clusters.client
        self.controllers: list[ControllerProcess] = []

    def start_controller(self, *flags: str) -> ControllerProcess:
        name = f"controller-{len(self.controllers)}"
        made = ControllerProcess(self.directory / name, self.program, *(flags or QUICK))
        self.controllers.append(made)
        made.process.start()
        return made

    async def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.clusters.get(name)).get("status") or {}
        return found

    async def statuses(self) -> dict[str, dict[str, Any]]:
        listed = items(await self.clusters.list())
        return {each["metadata"]["name"]: each.get("status") or {} for each in listed}

    async def events(self) -> list[Object]:
        return items(await self.client.resource(EVENTS, namespace="default").list())

    async def lease(self) -> dict[str, Any]:
        spec: dict[str, Any] = (await self.client.resource(LEASES, namespace="kube-system").get(LEASE))["spec"]
        return spec

    def logs(self) -> str:
        return "\n".join(each.process.log_end() for each in self.controllers)


@contextlib.asynccontextmanager
async def running_fleet(
    directory: Path, *, members: int = 4, flags: Sequence[str] = (), version: str = "v1beta1"
) -> AsyncIterator[Fleet]:
    """A registry that knows so many members."""
    program = Program(directory / "registry", *flags)
    simulator = Simulator(members, directory=directory / "identities")
    simulator.write_registry(directory / "members")
    try:
        await asyncio.to_thread(program.start)
        async with simulator, Client(config_of(program)) as client:
            fleet = Fleet(directory, program, simulator, client.resource(replace(CLUSTERS, version=version)))
            for member in simulator.members:
                await fleet.clusters.create(_in_version(member.cluster(), version))
            try:
                yield fleet
            finally:
                for controller in fleet.controllers:
                    await asyncio.to_thread(controller.process.end)
    finally:
        await asyncio.to_thread(program.end)


def _in_version(cluster: Object, version: str) -> Object:
    return conversion.to_v1alpha1(cluster) if version == "v1alpha1" else cluster


def condition(status: dict[str, Any], name: str) -> dict[str, Any]:
    found = (each for each in status.get("conditions", []) if each["type"] == name)
    return next(found, {})


def shown(status: dict[str, Any]) -> tuple[str, str]:
    """The state, and the reason of it."""
    return status.get("state", ""), condition(status, "OK").get("reason", "")
