"""Several replicas of the server on an etcd of several members: all of it can be harmed, and worked on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from clusterregistry.apiserver.storage.interface import prefix_of
from tests.apiserver.storage.etcd_servers import EtcdCluster, Member, Settings
from tests.product import ETCD_PREFIX
from tests.system.faults.connections import Target
from tests.system.faults.nemesis import Chosen
from tests.system.faults.servers import Server

MEMBERS, REPLICAS = 3, 2
CLUSTER_KEYS = ETCD_PREFIX + prefix_of("clusterregistry.k8s.io", "clusters")
STARTS = 20
"""How often a replica is started that gives up since it finds no etcd with a leader."""
END_SECONDS = 10.0


class StoreMember:
    """A member of the etcd, as a victim."""

    def __init__(self, member: Member) -> None:
        self.name, self._member = member.name, member

    @property
    def pid(self) -> int:
        return self._member.process.pid

    async def ended(self) -> None:
        await asyncio.to_thread(self._member.process.wait, END_SECONDS)

    async def start(self) -> None:
        await asyncio.to_thread(self._member.start)


class Replica(Server):
    """A server as its supervisor runs it: when it ends at the start, it is started again."""

    async def start(self) -> None:
        for _ in range(STARTS):
            try:
                await super().start()
            except AssertionError:
                if self.is_running:
                    raise
            else:
                return
        raise AssertionError(f"{self.name} gave up at {STARTS} starts")


class Site:
    """Two replicas and three members, in one directory."""

    def __init__(self, directory: Path) -> None:
        storage = directory / "etcd"
        storage.mkdir(parents=True)
        self._etcd = EtcdCluster(storage, Settings(members=MEMBERS, killed=True))
        # A watch that resumes after a while must find its history: compaction is left to others, who are not there.
        flags = ("--etcd-servers", ",".join(self._etcd.endpoints), "--etcd-compaction-interval", "0s")
        self._replicas = [Replica(directory / f"replica-{n}", *flags) for n in range(REPLICAS)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(self._etcd.end)
            await asyncio.to_thread(self._etcd.start)
            for replica in self._replicas:
                await stack.enter_async_context(replica.running())
            yield

    def targets(self) -> list[Target]:
        return [replica.target() for replica in self._replicas]

    async def choose_member(self, rng: random.Random) -> Chosen:
        """One of them; the leader more often than the others, as its loss is felt most."""
        leader = await asyncio.to_thread(self._etcd.leader)
        member = leader if rng.random() < 0.3 else rng.choice(self._etcd.members)
        return Chosen("leader" if member is leader else "follower", StoreMember(member))

    async def choose_replica(self, rng: random.Random) -> Chosen:
        return Chosen("replica", rng.choice(self._replicas))

    async def scribble(self, name: str, value: str) -> None:
        """Writes to the key of an object past all replicas. Raises AssertionError when the etcd does not take it."""
        await asyncio.to_thread(self._etcd.etcdctl, "put", f"{CLUSTER_KEYS}{name}", value)

    async def keys(self) -> list[str]:
        """The names of all objects that the etcd has."""
        found = await asyncio.to_thread(self._etcd.etcdctl, "get", "--prefix", "--keys-only", CLUSTER_KEYS)
        return [line.removeprefix(CLUSTER_KEYS) for line in found.split()]

    async def save(self, snapshot: Path) -> None:
        await asyncio.to_thread(self._etcd.save, snapshot)

    async def restore(self, snapshot: Path) -> None:
        """Turns the etcd back under the replicas, which go on."""
        await asyncio.to_thread(self._etcd.restore, snapshot)

    async def recovered(self) -> None:
        """Returns when every member serves."""
        await asyncio.to_thread(self._etcd.wait_until_healthy)

    def tracebacks(self) -> list[str]:
        """What the replicas logged of errors that nobody was prepared for."""
        return [trace for replica in self._replicas for trace in replica.tracebacks()]
