"""What a status controller and the registry beside it cost with thousands of clusters, and how soon a death is seen.

The members are simulated (tools/simulator), in a process of their own: their CPU is not counted, but they share the
machine. One percent of them each is dead, hanging and slow. Everything is at its defaults.
"""

import asyncio
import json
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks import servers
from benchmarks.driver import LoadError
from benchmarks.meter import Meter, Record, percentile, usage
from benchmarks.progress import Say
from benchmarks.servers import Workshop
from benchmarks.targets import Target
from clusterregistry.client.rest import Client, GroupVersionResource
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.watch import RetryWatcher, WatchOptions
from tools import live_server
from tools.ports import free_ports
from tools.processes import Process
from tools.simulator.faults import Fault

INTERVAL = 30.0
"""Seconds between two observations of a cluster, the controller's default."""

MEMBERS = 5_000
_ILL = {Fault.SILENT: 0.01, Fault.TLS_SILENT: 0.01, Fault.SLOW: 0.01}
"""Dead, hanging and slow members, as parts of all."""
_DYING = 0.02
"""Members that die while the fleet is watched."""

_CLUSTERS = GroupVersionResource("clusterregistry.k8s.io", "v1beta1", "clusters")
_CREATIONS_AT_ONCE = 16
_START_SECONDS = 600.0
_DEATH_SECONDS = 120.0


@dataclass(slots=True)
class Seen:
    """What a watch has shown of one cluster; times are of the monotonic clock."""

    observed_at: str = ""
    at: float = 0.0
    state: str = ""
    gaps: list[float] = field(default_factory=list)
    """Seconds between two observations."""


class Sightings:
    """Follows the status of all clusters through a watch."""

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}
        self.left_ready: dict[str, float] = {}
        """When a cluster was first shown in another state than Ready, since ``forget``."""
        self.events = 0

    def forget(self) -> None:
        """Begins to collect again; what is known of the clusters stays."""
        self.events, self.left_ready = 0, {}
        for each in self.seen.values():
            each.gaps.clear()

    def take(self, cluster: dict[str, Any]) -> None:
        self.events += 1
        now, name, status = time.monotonic(), cluster["metadata"]["name"], cluster.get("status") or {}
        seen = self.seen.setdefault(name, Seen())
        if (observed_at := status.get("observedAt", "")) != seen.observed_at:
            if seen.at:
                seen.gaps.append(now - seen.at)
            seen.observed_at, seen.at = observed_at, now
        seen.state = status.get("state", "")
        if seen.state != "Ready":
            self.left_ready.setdefault(name, now)

    def gaps(self, names: set[str]) -> list[float]:
        """All gaps of these clusters in order of length, those that have not ended included."""
        now = time.monotonic()
        found = [gap for name in names for gap in (*self.seen[name].gaps, now - self.seen[name].at)]
        return sorted(found)


class Members:
    """The simulated members, switched over the control port of their process."""

    def __init__(self, directory: Path, count: int) -> None:
        port, control = free_ports(2)
        self.control = f"http://127.0.0.1:{control}"
        self.files = directory / "members"
        command = [sys.executable, "-m", "tools.simulator"]
        command += [f"--members={count}", f"--port={port}", f"--control-port={control}"]
        self.process = Process([*command, f"--write-registry={self.files}"], log=directory / "simulator.log")

    def start(self) -> None:
        self.process.start()
        self.process.wait_until(self._answers, seconds=_START_SECONDS)

    def _answers(self) -> bool:
        try:
            return bool(self._call("GET", "/members"))
        except OSError:
            return False

    def spread(self, fault: Fault, count: int) -> list[str]:
        """Gives a fault to so many members that have none; returns their names."""
        names: list[str] = self._call("PUT", f"/faults/{fault}/{count}")["members"]
        return names

    def clusters(self) -> list[dict[str, Any]]:
        """The objects for the registry."""
        return list(yaml.load_all((self.files / "clusters.yaml").read_text(), Loader=yaml.CSafeLoader))

    def _call(self, method: str, path: str) -> dict[str, Any]:
        request = urllib.request.Request(self.control + path, method=method)  # noqa: S310 - our own
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
            return found


@dataclass(kw_only=True)
class Fleet:
    """One run: start, a steady state, and deaths."""

    workshop: Workshop
    say: Say
    members: int = MEMBERS
    seconds: float = 180.0
    """Of the steady state that is measured."""

    def run(self) -> Record:
        """Raises LoadError when something does not start, or is never seen."""
        directory = self.workshop.directory
        members = Members(directory, self.members)
        with servers.running(self.workshop.make(servers.SQLITE)) as target, _ended(members.process):
            self.say(f"{self.members:,} simulated members")
            members.start()
            return asyncio.run(self._run(target, members, directory))

    async def _run(self, target: Target, members: Members, directory: Path) -> Record:
        config = RestConfig(
            server=target.url, user_agent="bench", insecure_skip_tls_verify=True, token=target.token, timeout=60.0
        )
        async with Client(config) as client, _followed(client) as sightings:
            took = await self._register(client, members.clusters())
            self.say(f"registered in {took:.0f} s; the controller starts")
            with _ended(_controller(target, members, directory)) as controller:
                controller.start()
                begun = time.monotonic()
                await _until(
                    lambda: controller.has_ended or _all_observed(sightings, self.members),
                    _START_SECONDS,
                    "an observation of each",
                )
                if controller.has_ended:
                    raise LoadError(f"the controller ended:\n{controller.log_end()}")
                first = time.monotonic() - begun
                self.say(f"each was observed once after {first:.0f} s")
                ill = await self._make_ill(members)
                healthy = set(sightings.seen) - ill
                steady = await self._steady(target, controller, members, sightings, healthy)
                deaths = await self._deaths(members, sightings)
        return {"members": self.members, "first_observations_s": first, **steady, **deaths}

    async def _register(self, client: Client, clusters: list[dict[str, Any]]) -> float:
        begun, resource = time.monotonic(), client.resource(_CLUSTERS)
        remaining = iter(clusters)

        async def create() -> None:
            for cluster in remaining:
                await resource.create(cluster)

        await asyncio.gather(*(create() for _ in range(_CREATIONS_AT_ONCE)))
        return time.monotonic() - begun

    async def _make_ill(self, members: Members) -> set[str]:
        """Gives some members their faults, and waits until breakers are open and slow ones known."""
        names: set[str] = set()
        for fault, part in _ILL.items():
            names.update(await asyncio.to_thread(members.spread, fault, max(1, int(self.members * part))))
        await asyncio.sleep(4 * INTERVAL)
        return names

    async def _steady(
        self, target: Target, controller: Process, members: Members, sightings: Sightings, healthy: set[str]
    ) -> Record:
        self.say(f"steady for {self.seconds:.0f} s")
        sightings.forget()
        own = Target(target.url, token="", pids=[controller.pid])
        simulated = usage([members.process.pid]).cpu_seconds
        with Meter(own) as of_controller, Meter(target) as of_registry:
            await asyncio.sleep(self.seconds)
        simulated = usage([members.process.pid]).cpu_seconds - simulated
        gaps = sightings.gaps(healthy)
        late = [gap for gap in gaps if gap > 1.5 * INTERVAL]
        return {
            "seconds": of_controller.wall,
            "controller_cpu_pct": 100 * of_controller.cpu / of_controller.wall,
            "controller_rss_mb": of_controller.after.rss,
            "registry_cpu_pct": 100 * of_registry.cpu / of_registry.wall,
            "registry_rss_mb": of_registry.after.rss,
            "simulator_cpu_pct": 100 * simulated / of_controller.wall,
            "status_writes_per_s": sightings.events / of_controller.wall,
            "gap_p50_s": percentile(gaps, 50),
            "gap_p99_s": percentile(gaps, 99),
            "gap_max_s": gaps[-1],
            "late": len(late),
            "observations": len(gaps),
            "not_ready_pct": 100 * sum(sightings.seen[name].state != "Ready" for name in healthy) / len(healthy),
        }

    async def _deaths(self, members: Members, sightings: Sightings) -> Record:
        count = max(1, int(self.members * _DYING))
        self.say(f"{count} members die")
        sightings.forget()
        begun = time.monotonic()
        dead = set(await asyncio.to_thread(members.spread, Fault.REFUSED, count))
        await _until(lambda: dead <= sightings.left_ready.keys(), _DEATH_SECONDS, "the deaths")
        seen = sorted(sightings.left_ready[name] - begun for name in dead)
        return {
            "deaths": count,
            "death_p50_s": percentile(seen, 50),
            "death_p99_s": percentile(seen, 99),
            "death_max_s": seen[-1],
        }


def _controller(target: Target, members: Members, directory: Path) -> Process:
    kubeconfig = directory / "controller.kubeconfig"
    cluster = {"server": target.url, "insecure-skip-tls-verify": True}
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "registry", "cluster": cluster}],
                "users": [{"name": "controller", "user": {"token": target.token}}],
                "contexts": [{"name": "registry", "context": {"cluster": "registry", "user": "controller"}}],
                "current-context": "registry",
            }
        )
    )
    (port,) = free_ports(1)
    command = [*live_server.installed_command(), "controller", f"--kubeconfig={kubeconfig}"]
    command += [f"--access-config={members.files / 'access.yaml'}", "--bind-address=127.0.0.1", f"--secure-port={port}"]
    return Process(command, log=directory / "controller.log")


@contextmanager
def _ended(process: Process) -> Iterator[Process]:
    """The process, which is ended with the block."""
    try:
        yield process
    finally:
        process.end()


@asynccontextmanager
async def _followed(client: Client) -> AsyncIterator[Sightings]:
    """What a watch of all clusters shows, from their creation on."""
    sightings, resource = Sightings(), client.resource(_CLUSTERS)
    version = (await resource.list())["metadata"]["resourceVersion"]

    async def follow() -> None:
        async for event in RetryWatcher(resource, WatchOptions(resource_version=version)).events():
            if event.type in {"ADDED", "MODIFIED"}:
                sightings.take(event.object)

    task = asyncio.create_task(follow())
    try:
        yield sightings
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _all_observed(sightings: Sightings, count: int) -> bool:
    return len(sightings.seen) == count and all(each.observed_at for each in sightings.seen.values())


async def _until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise LoadError(f"{what} did not come within {seconds:.0f} s")
        await asyncio.sleep(0.2)
