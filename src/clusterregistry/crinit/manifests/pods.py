"""Parts of pods: what makes them pass the ``restricted`` Pod Security level, mounts and probes."""

from __future__ import annotations

from dataclasses import dataclass

from clusterregistry.crinit.manifests.objects import Manifest

USER = 65532
"""Nobody's number in images without a shell, and the Dockerfile's."""

READABLE = 0o440
"""Secrets in a pod: for its user, through the group that owns its volumes."""


def pod_security() -> Manifest:
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> Manifest:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A volume and where the container finds it."""

    name: str
    path: str
    source: Manifest
    read_only: bool = False

    def volume(self) -> Manifest:
        return {"name": self.name, **self.source}

    def mount(self) -> Manifest:
        mounted: Manifest = {"name": self.name, "mountPath": self.path}
        return {**mounted, "readOnly": True} if self.read_only else mounted


def secret(name: str, *, path: str, secret_name: str, only: tuple[str, ...] = ()) -> Mount:
    source: Manifest = {"secretName": secret_name, "defaultMode": READABLE}
    if only:
        source["items"] = [{"key": key, "path": key} for key in only]
    return Mount(name=name, path=path, source={"secret": source}, read_only=True)


def empty(name: str, *, path: str) -> Mount:
    return Mount(name=name, path=path, source={"emptyDir": {}})


def claim(name: str, *, path: str, claim_name: str) -> Mount:
    return Mount(name=name, path=path, source={"persistentVolumeClaim": {"claimName": claim_name}})


def probe(path: str, *, port: str, scheme: str, period: int, failures: int) -> Manifest:
    return {"httpGet": {"path": path, "port": port, "scheme": scheme}, **_pace(period, failures)}


def command_probe(command: list[str], *, period: int, failures: int) -> Manifest:
    return {"exec": {"command": command}, **_pace(period, failures)}


def _pace(period: int, failures: int) -> Manifest:
    return {"periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}


def spread(match: dict[str, str]) -> list[Manifest]:
    """Replicas on different nodes, where there are as many."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": match},
        }
    ]
