"""The identity of a cluster: what is on record in its status, and whether what was observed is the same cluster.

The record is the UID of the namespace kube-system, and the authority that signed the certificate of the API server. It
is made from the first observation that nothing contradicts, and is never replaced: an operator who means another
cluster removes it from ``status.properties``, and the next observation makes a new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.client.errors import printable
from clusterregistry.controllers.observer.observation import Observation

KUBE_SYSTEM_UID = f"{GROUP}/kube-system-uid"
SERVING_AUTHORITY = f"{GROUP}/serving-authority"
"""Names of properties; the authority is the SHA-256 of its public key."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_MOST_SHOWN = 128


class Identity(NamedTuple):
    """The two marks of a cluster; empty: not known."""

    uid: str = ""
    authority: str = ""


def recorded(properties: Mapping[str, str]) -> Identity:
    """The identity that is on record."""
    return Identity(properties.get(KUBE_SYSTEM_UID, ""), properties.get(SERVING_AUTHORITY, ""))


def observed(observation: Observation) -> Identity:
    """The identity that the newest observation has, of which parts may be older."""
    authority = observation.serving.authority if observation.serving else ""
    return Identity(observation.kube_system_uid.value or "", authority)


def differences(cluster: Mapping[str, Any], record: Identity, found: Identity) -> Iterator[str]:
    """What makes the observed cluster another one than the one on record, or than ``spec.clusterID`` says.

    A clusterID that is no UUID follows another convention than the UID of kube-system, and is not compared.
    """
    cluster_id = _cluster_id(cluster)
    if found.uid and record.uid and found.uid != record.uid:
        yield f"the namespace kube-system has the UID {_shown(found.uid)}, on record is {_shown(record.uid)}"
    if found.uid and cluster_id and found.uid.lower() != cluster_id.lower():
        yield f"the namespace kube-system has the UID {_shown(found.uid)}, spec.clusterID is {_shown(cluster_id)}"
    if found.authority and record.authority and found.authority != record.authority:
        yield f"the authority of the server is {_shown(found.authority)}, on record is {_shown(record.authority)}"


def to_record(record: Identity, found: Identity, *, is_changed: bool) -> dict[str, str]:
    """The properties that hold the record: it grows by what was observed, unless that is another cluster."""
    parts = zip((KUBE_SYSTEM_UID, SERVING_AUTHORITY), record, found, strict=True)
    kept = {name: before or ("" if is_changed else now) for name, before, now in parts}
    return {name: value for name, value in kept.items() if value}


def _cluster_id(cluster: Mapping[str, Any]) -> str:
    spec = cluster.get("spec")
    cluster_id = spec.get("clusterID") if isinstance(spec, dict) else None
    return cluster_id if isinstance(cluster_id, str) and _UUID.fullmatch(cluster_id) else ""


def _shown(value: str) -> str:
    return printable(value, _MOST_SHOWN)
