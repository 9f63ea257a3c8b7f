"""Who wrote the status of clusters, and who held the Lease then: from the audit log of the registry.

The revisions of a registry are one sequence for everything that is stored. So the order of the writes of the Lease and
of those of clusters is known, and each names the client certificate that it came with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {
            "level": "RequestResponse",
            "verbs": ["create", "update", "patch"],
            "resources": [
                {"group": "clusterregistry.k8s.io", "resources": ["clusters/status"]},
                {"group": "coordination.k8s.io", "resources": ["leases"]},
            ],
        },
        {"level": "None"},
    ],
}
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_REFUSED = 400


def audit_flags(directory: Path) -> tuple[str, ...]:
    """The flags of a registry whose log ``history`` reads."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "audit-policy.json").write_text(json.dumps(POLICY))
    return f"--audit-policy-file={directory / 'audit-policy.json'}", f"--audit-log-path={directory / 'audit.log'}"


@dataclass(frozen=True, slots=True)
class Write:
    """A write that was carried out. ``holder`` is that of a Lease, empty for a status."""

    revision: int
    writer: str
    """The id of the client certificate."""
    is_lease: bool
    holder: str
    name: str
    status: Mapping[str, Any]


def history(directory: Path) -> list[Write]:
    """All writes in the order of their revisions."""
    lines = (directory / "audit.log").read_text().splitlines()
    return sorted(_writes(json.loads(line) for line in lines), key=lambda write: write.revision)


def _writes(events: Iterator[dict[str, Any]]) -> Iterator[Write]:
    for event in events:
        if event["responseStatus"]["code"] >= _REFUSED:
            continue
        stored = event["responseObject"]
        is_lease = event["objectRef"]["resource"] == "leases"
        yield Write(
            revision=int(stored["metadata"]["resourceVersion"]),
            writer=event["user"]["extra"].get(_CREDENTIAL, [""])[0],
            is_lease=is_lease,
            holder=stored["spec"].get("holderIdentity", "") if is_lease else "",
            name=stored["metadata"]["name"],
            status={} if is_lease else stored.get("status", {}),
        )


def check_one_writer(writes: list[Write]) -> dict[str, int]:
    """Asserts that each status was written by the holder of the Lease. Returns how many each holder wrote."""
    leader, holder = "", ""
    counts: dict[str, int] = {}
    for write in writes:
        if write.is_lease:
            leader, holder = write.writer if write.holder else "", write.holder
        else:
            assert write.writer == leader, f"{write.name} was written at {write.revision}, the leader was {holder!r}"
            counts[holder] = counts.get(holder, 0) + 1
    return counts


def states(writes: list[Write]) -> dict[str, list[str]]:
    """The states that each cluster has had, one after the other."""
    found: dict[str, list[str]] = {}
    for write in writes:
        if not write.is_lease:
            known = found.setdefault(write.name, [])
            if not known or known[-1] != write.status.get("state"):
                known.append(str(write.status.get("state")))
    return found
