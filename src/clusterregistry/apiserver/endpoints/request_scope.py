"""RequestScope: the resource and the version that a request is for, with its store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from clusterregistry.apimachinery.fieldmanager.field_manager import FieldManager, View
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.object_meta_schema import whole_object
from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.group_rights import GroupRights
from clusterregistry.apiserver.endpoints.request_info import RequestInfo
from clusterregistry.apiserver.registry.broadcaster import Broadcaster
from clusterregistry.apiserver.registry.resource import Definition, Resource, Version
from clusterregistry.apiserver.registry.selectable_fields import SelectableFields
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.strategy import Admission, Admit, Strategy
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import converted

_ANOTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindScope:
    """One served version of a kind, as far as bodies are decoded."""

    resource: Definition
    version: Version
    structural: Structural

    @property
    def group(self) -> str:
        """The group in which the version is served."""
        return self.resource.group_of(self.version)

    @property
    def group_version(self) -> str:
        return group_version(self.resource, self.version)

    @property
    def type(self) -> tuple[str, str]:
        """``apiVersion`` and ``kind`` of its objects."""
        return self.group_version, self.resource.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestScope(KindScope):
    """One served version of a resource, with its store and its broadcaster."""

    resource: Resource
    store: Store
    broadcaster: Broadcaster
    field_managers: Mapping[str, FieldManager]
    """By subresource."""
    admissions: Mapping[str, Admission] = field(default_factory=dict)
    """By subresource: the admission of writes, for kinds where the right to write depends on the object."""
    group_rights: GroupRights | None = None
    """The rights by groups of its objects; None: it has no groups."""

    fields: SelectableFields = field(init=False)
    """The fields that field selectors can name."""
    is_stored_version: bool = field(init=False)
    """Whether objects are served in the version in which they are stored."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", SelectableFields.of(self.resource, self.version))
        object.__setattr__(self, "is_stored_version", self.version is self.resource.stored_as)

    def object_bytes(self, kv: KeyValue) -> bytes:
        """The object in this version as JSON."""
        return kv.value if self.is_stored_version else self.in_version((kv,))[0].value

    def in_version(self, items: Sequence[KeyValue]) -> Sequence[KeyValue]:
        """The objects in this version, as they are served."""
        return items if self.is_stored_version else converted(items, self.group_version, self.version.from_storage)

    def strategy_for(self, subresource: str) -> Strategy:
        if not subresource:
            return self.resource.strategy_of(self.version)
        # Routes let no subresource through that the resource does not have.
        return self.version.subresource_strategies.get(subresource) or self.resource.subresources[subresource].strategy

    def field_manager_for(self, subresource: str) -> FieldManager:
        return self.field_managers[subresource]

    def admit_for(self, user: User, info: RequestInfo) -> Admit | None:
        """The check that the store makes before it writes an object."""
        admission = self.admissions.get(info.subresource)
        return None if admission is None else partial(admission.admit, user=user, name=info.name)

    def place(self, obj: dict[str, Any], info: RequestInfo) -> None:
        """Sets the namespace of an object, which is that of the request. Raises 400 for an object that has another.

        An object of a root-scoped kind has none; the store drops it.
        """
        if not self.resource.namespaced:
            return
        if obj["metadata"].get("namespace", info.namespace) != info.namespace:
            raise errors.bad_request(_ANOTHER_NAMESPACE)
        obj["metadata"]["namespace"] = info.namespace

    def not_supported(self, verb: str) -> errors.APIError:
        """405."""
        return errors.method_not_supported(group=self.group, resource=self.resource.plural, action=verb)


def group_version(resource: Definition, version: Version) -> str:
    """``GROUP/VERSION``, as ``apiVersion`` has it."""
    group = resource.group_of(version)
    return f"{group}/{version.name}" if group else version.name


def field_managers(resource: Resource, version: Version, *, now: Callable[[], str]) -> dict[str, FieldManager]:
    """The field managers for writes in one version, by subresource."""
    strategies = {"": resource.strategy} | {name: each.strategy for name, each in resource.subresources.items()}
    # As in kube-apiserver: a write drops the entries of versions in other groups, which it cannot convert.
    views = {
        group_version(resource, each): View(
            schema=whole_object(each.schema), to_storage=each.to_storage, from_storage=each.from_storage
        )
        for each in resource.known_versions
        if each.group == version.group
    }
    return {
        subresource: FieldManager(
            views,
            api_version=group_version(resource, version),
            kind=resource.kind,
            subresource=subresource,
            reset_fields=strategy.reset_fields,
            blank=_blank(version),
            now=now,
        )
        for subresource, strategy in strategies.items()
    }


def _blank(version: Version) -> dict[str, Any]:
    """The fields that every object of a native kind has, even if a client sets none: they have no manager."""
    blank: dict[str, Any] = {"metadata": {}}
    if version.decode is not None:
        version.decode(blank)
    del blank["metadata"]
    return blank
