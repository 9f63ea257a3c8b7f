"""The store of signing requests over a real storage, without the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery import certificates
from clusterregistry.apimachinery.fieldmanager.field_manager import FieldManager
from clusterregistry.apimachinery.meta import times
from clusterregistry.apiserver.endpoints.request_scope import field_managers
from clusterregistry.apiserver.registry.certificates.resource import certificate_signing_request_resource
from clusterregistry.apiserver.registry.certificates.signer import OwnAuthority
from clusterregistry.apiserver.registry.rbac.bootstrap import ServerWriter
from clusterregistry.apiserver.registry.store import Store, UpdateRequest
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.object_bytes import decoded, presented
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage

Object = dict[str, Any]


def warn(text: str) -> None:
    raise AssertionError(text)


@dataclass(frozen=True)
class Requests:
    """Signing requests, and writes to them as clients make them."""

    store: Store
    managers: dict[str, FieldManager] = field(repr=False)

    @property
    def writer(self) -> ServerWriter:
        """What the server writes the status with."""
        return ServerWriter(store=self.store, field_manager=self.managers["status"], subresource="status")

    async def create(self, request: Object) -> Object:
        self.managers[""].record_update(None, request, manager="client")
        return decoded(await self.store.create(request, dry_run=False, warn=warn))

    async def get(self, name: str) -> Object:
        return decoded(await self.store.get(name))

    async def update(self, name: str, subresource: str, **status: Any) -> Object:
        """Merges fields into the status through a subresource."""

        def change(old: Object | None) -> Object:
            assert old is not None
            return {**old, "metadata": {**old["metadata"]}, "status": old["status"] | status}

        strategy = self.store.resource.subresources[subresource].strategy
        written = await self.store.update(name, UpdateRequest(change=change, strategy=strategy, warn=warn))
        return decoded(written.kv)

    async def decide(self, name: str, kind: str = "Approved", **fields: str) -> Object:
        return await self.update(name, "approval", conditions=[{"type": kind, "status": "True", **fields}])


@asynccontextmanager
async def requests_over(storage: Storage) -> AsyncIterator[Requests]:
    resource = certificate_signing_request_resource()
    prefix = interface.prefix_of(resource.group, resource.plural)
    cacher = await Cacher.open(storage, prefix, present=presented)
    managers = field_managers(resource, resource.versions[0], now=times.present)
    try:
        yield Requests(Store(resource, cacher, now=times.present), managers)
    finally:
        await cacher.close()


@asynccontextmanager
async def open_requests(directory: Path) -> AsyncIterator[Requests]:
    storage = await SQLiteStorage.open(directory / "registry.db")
    try:
        async with requests_over(storage) as kept:
            yield kept
    finally:
        await storage.close()


def own_authority(directory: Path, *, now: float) -> OwnAuthority:
    """An authority in files, as a server has it."""
    made = certificates.new_authority(certificates.new_key(), now=now)
    found = OwnAuthority(directory / "ca.crt", directory / "ca.key")
    found.certificate.write_bytes(certificates.certificate_pem(made.certificate))
    found.key.write_bytes(certificates.key_pem(made.key))
    return found
