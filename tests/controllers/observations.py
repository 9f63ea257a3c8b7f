"""Observations as an observer reports them, and clusters as they are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clusterregistry.controllers.observer.observation import (
    CredentialInfo,
    Failure,
    Health,
    Nodes,
    Observation,
    Reason,
    Section,
    ServingCertificate,
)

NOW = 1_800_000_000.0
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
OTHER_UID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
AUTHORITY = "a" * 64
OTHER_AUTHORITY = "b" * 64
YEAR = 365 * 86400.0

NODES = Nodes(total=3, ready=3, capacity={"cpu": "12", "memory": "48Gi"}, allocatable={"cpu": "11", "memory": "45Gi"})


def well(**changes: Any) -> Observation:
    """A cluster that is well in every part, observed now."""
    usual = Observation(
        at=NOW,
        asked_at=NOW,
        endpoint="https://127.0.0.1:6443",
        credential=CredentialInfo(source="rule 1 (file)"),
        serving=ServingCertificate(not_after=NOW + YEAR, authority=AUTHORITY),
        health=Section(value=Health(ready=True), at=NOW),
        version=Section(value="v1.36.4", at=NOW),
        nodes=Section(value=NODES, at=NOW),
        kube_system_uid=Section(value=UID, at=NOW),
    )
    return replace(usual, **changes)


def failed(reason: Reason, **changes: Any) -> Observation:
    """The first round of an observer, in which nothing was learned."""
    return Observation(at=NOW, asked_at=NOW, failure=failure(reason), **changes)


def failure(reason: Reason) -> Failure:
    return Failure(reason=reason, message=f"it is {reason}")


def cluster(status: dict[str, Any] | None = None, *, generation: int = 1, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "clusterregistry.k8s.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": "alpha", "uid": "1", "generation": generation, "resourceVersion": "5"},
        "spec": spec,
        **({} if status is None else {"status": status}),
    }
