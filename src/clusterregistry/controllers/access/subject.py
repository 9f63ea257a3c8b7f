"""What access rules look at in the object of a cluster, in v1alpha1 as in v1beta1. Objects may hold anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_PROVIDERS = 100
"""Auth providers of a cluster that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An entry of ``spec.authInfo.providers``."""

    type: str
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A cluster as rules see it. Two that are equal get the same credential."""

    name: str
    uid: str
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    """All of it: a credential is bound to the endpoint, too."""

    @property
    def cluster_id(self) -> str:
        return _text(self.spec, "clusterID")

    @property
    def providers(self) -> list[Provider]:
        listed = _part(self.spec, "authInfo").get("providers")
        entries = listed[:MAX_PROVIDERS] if isinstance(listed, list) else []
        return [_provider(entry) for entry in entries if isinstance(entry, dict)]


def subject_of(cluster: Mapping[str, Any]) -> Subject:
    """The subject of a wire object."""
    metadata = _part(cluster, "metadata")
    return Subject(
        name=_text(metadata, "name"),
        uid=_text(metadata, "uid"),
        labels=_texts(metadata.get("labels")),
        spec=_part(cluster, "spec"),
    )


def _provider(entry: Mapping[str, Any]) -> Provider:
    """In v1beta1 the type is a text, in v1alpha1 a mapping with a name."""
    kind = entry.get("type")
    name = _text(kind, "name") if isinstance(kind, dict) else kind
    return Provider(type=name if isinstance(name, str) else "", config=_texts(entry.get("config")))


def _part(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = value.get(key)
    return part if isinstance(part, dict) else {}


def _text(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""


def _texts(value: Any) -> dict[str, str]:
    entries = value.items() if isinstance(value, dict) else ()
    return {key: text for key, text in entries if isinstance(key, str) and isinstance(text, str)}
