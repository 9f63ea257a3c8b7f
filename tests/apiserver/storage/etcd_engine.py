"""The engines of the conformance suite that keep everything in a real etcd.

All tests share one server, each with its own prefix. Compaction is for the whole of an etcd: a test that has
compacted takes its server along, and the next one begins a new one.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from clusterregistry.apiserver.storage.etcd.store import EtcdStorage
from tests.apiserver.storage.etcd_servers import RUNS_HERE, WHY_NOT, EtcdCluster, Member

_numbers = itertools.count()


def settings_for(
    etcd: EtcdCluster, *, prefix: str = "/registry/test", password_file: Path | None = None
) -> EtcdSettings:
    """How our engine reaches an etcd of the tests."""
    access = etcd.access
    return EtcdSettings(
        endpoints=tuple(url.partition("://")[2] for url in etcd.endpoints),
        prefix=prefix,
        tls=access.ca is not None,
        ca_file=access.ca,
        certificate_file=access.certificate,
        key_file=access.key,
        user=access.user,
        password_file=password_file,
    )


async def eventually(happens: Callable[[], bool], *, seconds: float = 30.0) -> None:
    """Polls until a condition is true. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not happens():  # noqa: ASYNC110 - it is about a server or a process, which has no event
            await asyncio.sleep(0.01)


class SharedServer:
    """One etcd for many tests, started when the first one needs it and ended with the process."""

    def __init__(self) -> None:
        self._etcd: EtcdCluster | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    async def fresh(self) -> EtcdCluster:
        """An etcd that has all of its history."""
        if self._etcd is not None and _has_compacted(self._etcd.members[0]):
            self.end()
        if self._etcd is None:
            self._directory = tempfile.TemporaryDirectory(prefix="etcd-")
            self._etcd = EtcdCluster(Path(self._directory.name))
            atexit.register(self.end)
            await asyncio.to_thread(self._etcd.start)
        return self._etcd

    def end(self) -> None:
        atexit.unregister(self.end)
        if self._etcd is not None:
            self._etcd.end()
            self._etcd = None
        if self._directory is not None:
            self._directory.cleanup()


def _has_compacted(member: Member) -> bool:
    found = re.search(r"^etcd_debugging_mvcc_compact_revision (\S+)", member._ask("/metrics"), re.MULTILINE)
    return found is None or float(found[1]) > 0


SERVER = SharedServer()


class EtcdEngine:
    """A store under a prefix of its own; it fails when its server is frozen."""

    def __init__(self, _: Path) -> None:
        if not RUNS_HERE:
            pytest.skip(WHY_NOT)
        self._prefix = f"/registry/{next(_numbers)}"
        self._etcd: EtcdCluster | None = None
        self._storages: list[EtcdStorage] = []

    async def open(self) -> EtcdStorage:
        if self._etcd is None:
            self._etcd = await SERVER.fresh()
        storage = await EtcdStorage.open(settings_for(self._etcd, prefix=self._prefix))
        self._storages.append(storage)
        return storage

    async def open_second(self) -> EtcdStorage:
        return await self.open()

    async def close(self) -> None:
        while self._storages:
            await self._storages.pop().close()

    async def fail(self) -> None:
        self._member.pause()

    async def repair(self) -> None:
        self._member.resume()

    @property
    def _member(self) -> Member:
        assert self._etcd is not None
        return self._etcd.members[0]
