"""Writing the objects that the server itself keeps, as any client would: prepared, validated and with its manager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clusterregistry.apimachinery.fieldmanager.field_manager import Ownership
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.object_view import decoded, name_of
from clusterregistry.apiserver.registry.store import Store

Object = dict[str, Any]
Change = Callable[[Object], Object]


def _unheard(_text: str) -> None:
    """There is nobody to warn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """The objects of one kind. All methods but ``seen`` raise APIError when the storage cannot answer."""

    store: Store
    ownership: Ownership

    async def seen(self) -> dict[str, Object]:
        """All objects by name, as far as this server has seen: from memory."""
        page = await self.store.storage.list(self.store.prefix, revision=self.store.storage.revision)
        return {name_of(kv): decoded(kv) for kv in page.items}

    async def create(self, obj: Object, *, manager: str) -> None:
        """Raises 409 for one that is there."""
        self.ownership.record_update(None, obj, manager=manager)
        await self.store.create(obj, dry_run=False, warn=_unheard)

    async def change(self, name: str, change: Change, *, manager: str) -> None:
        """Replaces an object by what ``change`` makes of a copy of it. Raises 404."""

        def changed(old: Object | None) -> Object:
            if old is None:
                raise self.store.not_found(name)
            obj = change({**old, "metadata": {**old["metadata"]}})
            self.ownership.record_update(old, obj, manager=manager)
            return obj

        await self.store.update(name, changed, strategy=self.store.resource.strategy, dry_run=False, warn=_unheard)

    async def delete(self, name: str) -> None:
        await self.store.delete(name, DeleteOptions())
