"""The rights by groups of the stored resources that have groups: joins ``group_index`` and ``authz.group_rights``."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authz.group_rights import GroupRights, ObjectGroups
from clusterregistry.apiserver.authz.union import Union
from clusterregistry.apiserver.registry.group_index import GroupIndex
from clusterregistry.apiserver.registry.store import Store

_IN_NONE = ObjectGroups(frozenset())


def group_rights(stores: Iterable[Store], authorizer: Union) -> Mapping[tuple[str, str], GroupRights]:
    """The rights by groups, by group and plural of the resource as its versions are served."""
    found: dict[tuple[str, str], GroupRights] = {}
    for store in stores:
        if store.groups is not None:
            find = FindGroups(store, store.groups)
            rights = GroupRights(authorizer, groups=store.groups.grouping, membership=store.groups, find=find)
            resource = store.resource
            found |= {(resource.group_of(version), resource.plural): rights for version in resource.versions}
    return found


@dataclass(frozen=True, slots=True)
class FindGroups:
    """Finds the groups of an object as it is stored now, also on a storage that others write to."""

    store: Store
    index: GroupIndex

    def __call__(self, name: str) -> ObjectGroups | Awaitable[ObjectGroups]:
        """Raises 503 if the storage does not answer."""
        kv = self.store.get_cached(name)
        return self._read(name) if kv is None else ObjectGroups(self.index.groups_of_object(kv))

    async def _read(self, name: str) -> ObjectGroups:
        try:
            return ObjectGroups(self.index.groups_of_object(await self.store.get(name)))
        except APIError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return ObjectGroups(self.index.naming(name), exists=False)
            if error.code == HTTPStatus.CONFLICT:  # it cannot be read
                return _IN_NONE
            raise
