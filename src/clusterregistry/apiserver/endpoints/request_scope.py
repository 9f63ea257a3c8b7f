"""RequestScope: the resource and the version that a request is for, with its store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from clusterregistry.apimachinery.codecs import json_codec
from clusterregistry.apimachinery.fieldmanager.field_manager import FieldManager, View
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.object_meta_schema import whole_object
from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.registry.broadcaster import Broadcaster
from clusterregistry.apiserver.registry.resource import Definition, Resource, Version
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.strategy import Admission, Admit, Strategy
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import decoded


@dataclass(frozen=True, slots=True, kw_only=True)
class KindScope:
    """One served version of a kind, as far as bodies are decoded."""

    resource: Definition
    version: Version
    structural: Structural

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
    admission: Admission | None = None
    """The admission of writes, for kinds where the right to write depends on the object."""

    is_stored_version: bool = field(init=False)
    """Whether objects are served in the version in which they are stored."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_stored_version", self.version.name == self.resource.storage_version)

    def object_bytes(self, kv: KeyValue) -> bytes:
        """The object in this version as JSON."""
        if self.is_stored_version:
            return kv.value
        return json_codec.encode(self.object(kv))

    def object(self, kv: KeyValue) -> dict[str, Any]:
        """The object in this version as a fresh dict."""
        obj = decoded(kv)
        return obj if self.is_stored_version else self.version.from_storage(obj)

    def strategy_for(self, subresource: str) -> Strategy:
        if not subresource:
            return self.resource.strategy
        if self.resource.status_strategy is None or subresource != "status":
            raise AssertionError(subresource)  # routes let nothing else through
        return self.resource.status_strategy

    def field_manager_for(self, subresource: str) -> FieldManager:
        return self.field_managers[subresource]

    def admit_for(self, user: User, name: str) -> Admit | None:
        """The check that the store makes before it writes an object; ``name`` is the one in the path."""
        return None if self.admission is None else partial(self.admission.admit, user=user, name=name)

    def not_supported(self, verb: str) -> errors.APIError:
        """405."""
        return errors.method_not_supported(group=self.resource.group, resource=self.resource.plural, action=verb)


def group_version(resource: Definition, version: Version) -> str:
    """``GROUP/VERSION``, as ``apiVersion`` has it."""
    return f"{resource.group}/{version.name}" if resource.group else version.name


def field_managers(resource: Resource, version: Version, *, now: Callable[[], str]) -> dict[str, FieldManager]:
    """The field managers for writes in one version, by subresource."""
    strategies = {"": resource.strategy} | ({"status": resource.status_strategy} if resource.status_strategy else {})
    views = {
        group_version(resource, each): View(
            schema=whole_object(each.schema), to_storage=each.to_storage, from_storage=each.from_storage
        )
        for each in resource.versions
    }
    return {
        subresource: FieldManager(
            views,
            api_version=group_version(resource, version),
            kind=resource.kind,
            subresource=subresource,
            reset_fields=strategy.reset_fields,
            now=now,
        )
        for subresource, strategy in strategies.items()
    }
