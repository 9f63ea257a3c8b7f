"""What crinit remembers of a registry, in a ConfigMap beside it: its mode, its storage, the flags that were given.

A later run for the same registry need not repeat flags, and is kept from leaving data behind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.crinit import flags
from clusterregistry.crinit.host.client import Client, path_of
from clusterregistry.crinit.manifests.objects import Manifest, metadata
from clusterregistry.crinit.settings import Mode, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    mode: str
    storage: str
    flags: Mapping[str, str] = field(default_factory=dict)


def name_of(name: str) -> str:
    return f"{name}-crinit"


def load(client: Client, *, namespace: str, name: str) -> Record | None:
    """The record of a registry; None when crinit has not deployed one by this name."""
    found = client.get(path_of("v1", "ConfigMap", namespace=namespace, name=name_of(name)))
    if found is None:
        return None
    data = found.get("data") or {}
    try:
        given = {str(key): str(value) for key, value in json.loads(data.get("flags") or "{}").items()}
    except (ValueError, AttributeError):
        raise OperatorError(
            f"the ConfigMap {namespace}/{name_of(name)} is damaged: its flags are not a JSON object",
            remedy="delete that ConfigMap and give all flags once more",
        ) from None
    known = {key: value for key, value in given.items() if key in flags.REMEMBERED}
    return Record(mode=str(data.get("mode") or ""), storage=str(data.get("storage") or ""), flags=known)


def manifest(settings: Settings, given: Mapping[str, str]) -> Manifest:
    held = json.dumps(flags.remembered(given), sort_keys=True)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(settings, name_of(settings.name)),
        "data": {"mode": settings.mode.value, "storage": settings.storage.value, "flags": held},
    }


def require_same_mode(record: Record, mode: Mode, name: str) -> None:
    if record.mode and record.mode != mode:
        raise OperatorError(
            f'"{name}" is there already, deployed as {record.mode}',
            remedy=f"use crinit {record.mode}, or choose another name or namespace",
        )


def require_same_storage(record: Record, settings: Settings) -> None:
    """Objects do not move by themselves from one storage to another."""
    if record.storage and record.storage != settings.storage:
        raise OperatorError(
            f'"{settings.name}" keeps its objects in {record.storage}; these flags would start it empty on '
            f"{settings.storage.value}",
            remedy="deploy a second registry with these flags and copy the objects with kubectl (get -o yaml, apply), "
            "or give the flags for the storage that is there",
        )
