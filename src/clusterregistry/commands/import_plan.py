"""A plan of clusters to import: what would be created and changed, as the registry itself says; then the writes.

Clusters are written by server-side apply. The plan is the result of the same applies as a dry run, so that validation,
rights and owners of fields count before anything is written. Applying a plan twice changes nothing the second time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from clusterregistry.api.clusterregistry import v1alpha1
from clusterregistry.api.clusterregistry.v1beta1 import conversion
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client import errors
from clusterregistry.client.errors import printable
from clusterregistry.client.rest import Client, Object, WriteOptions, items, metadata
from clusterregistry.controllers.cluster_client import ClusterClient, served_version

FIELD_MANAGER = "clusterregistry-import"
CONCURRENCY = 16
_HTTPS_PORT = 443
_FEW = 3
"""Names that a note shows."""


class Action(StrEnum):
    """What becomes, or became, of a cluster."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    """It cannot be imported; nothing of it is written."""
    FAILED = "failed"
    """The write failed, or did not take place since others failed."""


WRITTEN = (Action.CREATED, Action.CHANGED)


@dataclass(slots=True, kw_only=True)
class Entry:
    """One cluster to import. ``manifest`` is in v1beta1 and has nothing but what is to be applied."""

    name: str
    source: str
    """Where it comes from, such as the name of a context."""
    file: str = ""
    manifest: Object | None = field(default=None, repr=False)
    action: Action | None = None
    fields: tuple[str, ...] = ()
    """The fields that change."""
    reason: str = ""
    """Why it was refused, or failed."""
    remedy: str = ""
    notes: list[str] = field(default_factory=list)

    def refuse(self, reason: str, *, remedy: str) -> None:
        self.action, self.reason, self.remedy = Action.REFUSED, reason, remedy


class Importer:
    """Plans and writes, over one client. ``take_over``: fields that other managers own are taken from them."""

    def __init__(self, client: Client, version: str, *, take_over: bool = False) -> None:
        self._clusters, self._force = ClusterClient(client, version=version), take_over
        self._stopped: errors.ClientError | None = None

    @classmethod
    async def connect(cls, client: Client, *, take_over: bool = False) -> Importer:
        """Raises OperatorError if the server is no registry, or does not answer."""
        try:
            return cls(client, await served_version(client), take_over=take_over)
        except errors.ClientError as error:
            raise _unusable(error) from None

    async def plan(self, entries: Sequence[Entry], *, progress: Callable[[int, int], None]) -> None:
        """Sets the action of each entry that was not refused before. Writes nothing. Raises OperatorError."""
        try:
            listed = items(await self._clusters.resource.list_all())
        except errors.ClientError as error:
            raise _unusable(error) from None
        before = {metadata(each)["name"]: self._clusters.interpret(each) for each in listed}
        _note_equal_servers(entries, before, registry=self._clusters.resource.client.config.server)
        await self._for_each(
            [each for each in entries if each.action is None],
            lambda entry: self._plan(entry, before.get(entry.name)),
            progress=progress,
        )
        if self._stopped is not None:
            raise _unusable(self._stopped)

    async def _plan(self, entry: Entry, before: Object | None) -> None:
        try:
            after = await self._apply(entry, dry_run=True)
        except _REFUSALS as error:
            entry.refuse(printable(str(error)), remedy=_remedy(error))
            return
        if before is None:
            entry.action = Action.CREATED
            return
        entry.fields = tuple(changed_fields(before, after))
        entry.action = Action.CHANGED if entry.fields else Action.UNCHANGED
        old, new = (",".join(_servers(each)) for each in (before, after))
        if old and old != new:
            entry.notes.append(f"the server was {old} before")

    async def write(self, entries: Sequence[Entry], *, progress: Callable[[int, int], None]) -> None:
        """Writes what the plan creates and changes. What fails is recorded in its entry; raises nothing."""
        chosen = [each for each in entries if each.action in WRITTEN]
        left = {each.name for each in chosen}

        async def write(entry: Entry) -> None:
            try:
                await self._apply(entry)
            except _REFUSALS as error:
                entry.action, entry.reason, entry.remedy = Action.FAILED, printable(str(error)), _remedy(error)
            left.discard(entry.name)

        await self._for_each(chosen, write, progress=progress)
        for entry in chosen:
            if entry.name in left:
                entry.action, entry.reason = Action.FAILED, f"the registry stopped answering: {self._stopped}"
                entry.remedy = "import again once the registry answers: what was written stays as it is"

    async def _apply(self, entry: Entry, *, dry_run: bool = False) -> Object:
        assert entry.manifest is not None
        alpha = self._clusters.version == v1alpha1.VERSION
        manifest = conversion.to_v1alpha1(entry.manifest) if alpha else entry.manifest
        options = WriteOptions(
            field_manager=FIELD_MANAGER, dry_run=dry_run, force=self._force, field_validation="Strict"
        )
        return self._clusters.interpret(await self._clusters.resource.apply(manifest, options))

    async def _for_each(
        self,
        entries: Sequence[Entry],
        work: Callable[[Entry], Awaitable[None]],
        *,
        progress: Callable[[int, int], None],
    ) -> None:
        """Works on some entries at a time, until all are done or the registry cannot be used any more."""
        pending, done = iter(entries), 0

        async def worker() -> None:
            nonlocal done
            for entry in pending:
                if self._stopped is not None:
                    return
                try:
                    await work(entry)
                except errors.ClientError as error:
                    self._stopped = error
                    return
                done += 1
                progress(done, len(entries))

        await asyncio.gather(*(worker() for _ in range(min(CONCURRENCY, len(entries)))))


_REFUSALS = (
    errors.BadRequestError,
    errors.ConflictError,
    errors.ForbiddenError,
    errors.InvalidError,
    errors.RequestEntityTooLargeError,
)
"""Answers about one cluster. After any other failure the next cluster would fail, too."""


def _remedy(error: errors.ClientError) -> str:
    if isinstance(error, errors.ConflictError):
        return "leave these fields to the manager that the message names, or take them over with --force-conflicts"
    if isinstance(error, errors.ForbiddenError):
        return "ask the registry's administrator for the right to patch and create clusters"
    return "correct what the message names"


def _unusable(error: errors.ClientError) -> OperatorError:
    message = f"the registry cannot be used: {printable(str(error), 400)}"
    remedy = "check the kubeconfig of the registry, that the registry runs, and the right to list clusters"
    return OperatorError(message, remedy=remedy)


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """The paths of labels, annotations and fields of the spec that differ between two clusters."""
    for part in ("labels", "annotations"):
        yield from _changes(f"metadata.{part}", metadata(before).get(part) or {}, metadata(after).get(part) or {})
    yield from _changes("spec", before.get("spec") or {}, after.get("spec") or {})


def _changes(path: str, before: Any, after: Any) -> Iterator[str]:
    if before == after:
        return
    if not isinstance(before, dict) or not isinstance(after, dict):
        yield path
        return
    for key in sorted(before.keys() | after.keys()):
        place = f"{path}[{key}]" if path.startswith("metadata.") else f"{path}.{key}"
        yield from _changes(place, before.get(key), after.get(key))


# One server under several names


def _note_equal_servers(entries: Sequence[Entry], stored: Mapping[str, Object], *, registry: str) -> None:
    manifests = {each.name: each.manifest for each in entries if each.manifest is not None and each.action is None}
    names: dict[str, set[str]] = {}
    for name, cluster in {**stored, **manifests}.items():
        for server in _servers(cluster):
            names.setdefault(server, set()).add(name)
    for entry in entries:
        if entry.manifest is not None and entry.action is None:
            if _settled(registry) in _servers(entry.manifest):
                entry.notes.append("the server is that of the registry itself")
            others = sorted({name for each in _servers(entry.manifest) for name in names[each]} - {entry.name})
            if others:
                shown = ", ".join(others[:_FEW]) + (f" and {len(others) - _FEW} more" if len(others) > _FEW else "")
                entry.notes.append(f"the same server is registered under another name: {shown}")


def _servers(cluster: Mapping[str, Any]) -> list[str]:
    """The servers of a cluster; equal ones are equal texts."""
    spec = cluster.get("spec")
    endpoints = spec.get("kubernetesApiEndpoints") if isinstance(spec, dict) else None
    found = endpoints.get("serverEndpoints") if isinstance(endpoints, dict) else None
    listed = found if isinstance(found, list) else []
    addresses = [each.get("serverAddress") for each in listed if isinstance(each, dict)]
    return [_settled(each) for each in addresses if isinstance(each, str) and each]


def _settled(address: str) -> str:
    try:
        url = urlsplit(address if "://" in address else f"https://{address}")
        host, port = url.hostname or "", url.port or _HTTPS_PORT
    except ValueError:
        return address
    return f"{url.scheme}://{f'[{host}]' if ':' in host else host}:{port}{url.path.rstrip('/')}"
