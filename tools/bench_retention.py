"""What the expiry of very many objects costs the requests beside it, on SQLite and on a real etcd with one member.

    make bench-retention
    make bench-retention ARGS='--count 1000 --only sqlite'      # a few seconds, to see that it works

Objects of the size of an event are created, and expire all at once. Meanwhile another object is read every two
milliseconds. The longest wait is that of a read, from the moment at which it was due to its answer, without HTTP. On a
machine that does other things, too, compare it with the reads before the expiry; the CPU is that of the event loop's
thread in one such wait, and does not depend on others.
``etcd-leases`` is what was not chosen: the objects are attached to leases of etcd, a thousand to each as kube-apiserver
does it, and the leases end.

Exit status 1 when a read beside our own sweep waits for more than 50 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import uvloop

from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.schema.schemas import Object, String
from clusterregistry.apiserver.controllers.retention import RetentionController
from clusterregistry.apiserver.gc_tuning import tune_collector
from clusterregistry.apiserver.registry.resource import Resource, Version
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.structural_strategy import SpecStrategy
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage import location as locations
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.etcd import messages
from clusterregistry.apiserver.storage.etcd.store import EtcdStorage
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.location import EtcdLocation, Location
from clusterregistry.apiserver.storage.object_bytes import presented, to_stored
from clusterregistry.cli.malloc import trim_malloc
from tests.apiserver.storage.etcd_servers import EtcdCluster, Settings
from tools.bench_storage import cpu_seconds

GOAL_SECONDS = 0.050
COUNT = 100_000
READ_EVERY = 0.002
FILLING = 64
"""Creates under way at a time."""

BEFORE = 60.0
"""Seconds of reads before the expiry."""

PER_LEASE = 1000
ENGINES = ("sqlite", "etcd", "etcd-leases")
SCHEMA = Object(fields={"message": String()})
LONG_AGO = "2020-01-01T00:00:00Z"


def resource(kind: str, **settings: Any) -> Resource:
    return Resource(
        group="bench.example.com",
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        versions=(Version(name="v1", schema=SCHEMA),),
        storage_version="v1",
        strategy=SpecStrategy(SCHEMA),
        **settings,
    )


NOTE = resource("Note", namespaced=True, retention=30.0)
OTHER = resource("Other")


def value_of(name: str) -> bytes:
    """An object of some 1.2 KB, as an event of a busy controller is, written long ago."""
    fields: dict[str, object] = {
        f"f:{field}": {} for field in ("action", "count", "firstTimestamp", "lastTimestamp", "message", "reason")
    }
    entry = {"manager": "bench", "operation": "Update", "time": LONG_AGO, "fieldsType": "FieldsV1", "fieldsV1": fields}
    metadata = {"name": name, "uid": str(uuid.uuid4()), "creationTimestamp": LONG_AGO, "managedFields": [entry]}
    return to_stored({"apiVersion": "v1", "kind": "Note", "metadata": metadata, "message": "x" * 600})


@dataclass
class Waits:
    """How long reads waited, in seconds, and how much CPU the loop's thread used in the meantime."""

    waits: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    async def read_on(self, store: Store) -> None:
        due = time.monotonic()
        while True:
            due = max(due + READ_EVERY, time.monotonic())
            spent = time.thread_time()
            await asyncio.sleep(due - time.monotonic())
            await store.get("a")
            self.waits.append(time.monotonic() - due)
            self.cpu.append(time.thread_time() - spent)

    def report(self) -> str:
        ordered = sorted(self.waits)
        half, p99 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
        return (
            f"{len(ordered)} reads: half below {half * 1e3:.1f} ms, 99% below {p99 * 1e3:.1f} ms, "
            f"the longest {ordered[-1] * 1e3:.1f} ms, with at most {max(self.cpu) * 1e3:.1f} ms of CPU"
        )


async def opened(storage: Storage, kind: Resource, stack: AsyncExitStack) -> Store:
    prefix = interface.prefix_of(kind.group, kind.plural)
    cacher = await Cacher.open(storage, prefix, present=presented)
    stack.push_async_callback(cacher.close)
    return Store(kind, cacher, now=times.present)


@asynccontextmanager
async def stores(location: Location) -> AsyncIterator[tuple[Storage, Store, Store]]:
    async with AsyncExitStack() as stack:
        storage = await locations.open_location(location)
        stack.push_async_callback(storage.close)
        yield storage, await opened(storage, NOTE, stack), await opened(storage, OTHER, stack)


async def fill(create: Callable[[int], Awaitable[object]], count: int) -> None:
    remaining = list(range(count))

    async def create_some() -> None:
        while remaining:
            await create(remaining.pop())

    await asyncio.gather(*(create_some() for _ in range(FILLING)))


async def sweep(location: Location, count: int) -> tuple[Waits, float]:
    """Our own sweep: waits of reads, and the seconds that it takes."""
    async with stores(location) as (storage, notes, others):

        async def create(number: int) -> object:
            name = f"note-{number:06}"
            return await storage.create(f"{notes.prefix}default/{name}", value_of(name))

        await fill(create, count)
        await storage.create(f"{others.prefix}a", value_of("a"))
        await others.storage.wait_for(await storage.current_revision())
        controller = RetentionController(notes)
        waits, seconds = await _measure(others, _sweep_until_empty(controller, notes))
        controller.close()
        return waits, seconds


async def _sweep_until_empty(controller: RetentionController, notes: Store) -> None:
    while notes.count():
        await controller.sweep()


async def end_leases(location: Location, count: int) -> tuple[Waits, float]:
    """Leases of etcd that end one after the other."""
    async with stores(location) as (storage, notes, others):
        assert isinstance(storage, EtcdStorage)
        client, keys = storage._client, storage._range  # noqa: SLF001 - what the engine does not offer
        leases = [
            (await client.call("grant", messages.LeaseGrantRequest(ttl=3600))).id for _ in range(0, count, PER_LEASE)
        ]

        async def create(number: int) -> object:
            name = f"note-{number:06}"
            key = keys.key(f"{notes.prefix}default/{name}")
            put = {"key": key, "value": value_of(name), "lease": leases[number // PER_LEASE]}
            return await client.call("txn", messages.TxnRequest(success=[{"request_put": put}]))

        await fill(create, count)
        await storage.create(f"{others.prefix}a", value_of("a"))
        await others.storage.wait_for(await storage.current_revision())

        async def revoke() -> None:
            for lease in leases:
                await client.call("revoke", messages.LeaseRevokeRequest(id=lease))
            while notes.count():  # noqa: ASYNC110 - until the events have come
                await asyncio.sleep(0.01)

        return await _measure(others, revoke())


async def _measure(others: Store, work: Coroutine[Any, Any, None]) -> tuple[Waits, float]:
    before = await _reads_beside(others, asyncio.sleep(BEFORE))
    print(f"    before: {before.report()}")
    begun = time.monotonic()
    return await _reads_beside(others, work), time.monotonic() - begun


async def _reads_beside(others: Store, work: Coroutine[Any, Any, None]) -> Waits:
    waits = Waits()
    reading = asyncio.create_task(waits.read_on(others))
    await work
    reading.cancel()
    return waits


def measure(engine: str, count: int) -> Waits:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-retention-")))
        location = locations.parse(f"sqlite:{directory / locations.DATABASE}")
        etcd = None
        if engine != "sqlite":
            etcd = stack.enter_context(EtcdCluster(directory, Settings(durable=True)))
            found = locations.parse(f"etcd:{','.join(etcd.endpoints)}")
            assert isinstance(found, EtcdLocation)
            location = EtcdLocation(replace(found.settings, prefix="/bench"))
        runner = stack.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
        cpu = time.process_time()
        work = end_leases if engine == "etcd-leases" else sweep
        waits, seconds = runner.run(work(location, count))
        print(f"{engine}: {count} objects expired in {seconds:.1f} s; {waits.report()}")
        spent = f"{time.process_time() - cpu:.1f} s of CPU here, with the creates"
        print(f"    {spent}" + (f"; {cpu_seconds(etcd.members[0].process.pid):.1f} s of etcd" if etcd else ""))
        return waits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT, help="objects that expire")
    parser.add_argument("--only", choices=ENGINES, help="one engine")
    arguments = parser.parse_args()
    trim_malloc()
    tune_collector()  # as the server does
    longest = {
        engine: max(measure(engine, arguments.count).waits)
        for engine in ([arguments.only] if arguments.only else ENGINES)
    }
    return int(any(seconds > GOAL_SECONDS for engine, seconds in longest.items() if engine != "etcd-leases"))


if __name__ == "__main__":
    sys.exit(main())
