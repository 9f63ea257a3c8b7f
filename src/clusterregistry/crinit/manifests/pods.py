"""The parts that pods share: arguments, security, mounts, probes, volumes, disruption budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterregistry.crinit.manifests.objects import ETCD, SERVER, Manifest, metadata, selector
from clusterregistry.crinit.settings import Settings, Storage

USER = 65532
"""The user ``nonroot`` of distroless images, and that of the Dockerfile."""

HTTPS = "https"
"""The name of the port of a container that serves over HTTPS."""

READABLE = 0o440
"""The mode of Secrets in a pod: readable by its user, through the group that owns its volumes."""


def pod_security() -> Manifest:
    """Returns the security context of a pod of the ``restricted`` Pod Security level."""
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
    """A volume and its path in the container."""

    name: str
    path: str
    source: Manifest
    read_only: bool = False

    def volume(self) -> Manifest:
        return {"name": self.name, **self.source}

    def mount(self) -> Manifest:
        mounted: Manifest = {"name": self.name, "mountPath": self.path}
        return {**mounted, "readOnly": True} if self.read_only else mounted


def arguments(own: Sequence[str], overrides: Sequence[str]) -> list[str]:
    """Returns a command line: a user's override takes the place of ours, others follow."""
    return list({argument.partition("=")[0]: argument for argument in (*own, *overrides)}.values())


def secret(name: str, *, path: str, secret_name: str, only: tuple[str, ...] = (), optional: bool = False) -> Mount:
    """With ``optional`` a missing Secret is an empty folder, which is filled when the Secret is there."""
    source: Manifest = {"secretName": secret_name, "defaultMode": READABLE}
    if only:
        source["items"] = [{"key": key, "path": key} for key in only]
    if optional:
        source["optional"] = True
    return Mount(name=name, path=path, source={"secret": source}, read_only=True)


def config_map(name: str, *, path: str, config_map_name: str) -> Mount:
    return Mount(name=name, path=path, source={"configMap": {"name": config_map_name}}, read_only=True)


def empty(name: str, *, path: str) -> Mount:
    return Mount(name=name, path=path, source={"emptyDir": {}})


def claim(name: str, *, path: str, claim_name: str) -> Mount:
    return Mount(name=name, path=path, source={"persistentVolumeClaim": {"claimName": claim_name}})


def probe(path: str, *, port: str, scheme: str, period: int, failures: int) -> Manifest:
    return {"httpGet": {"path": path, "port": port, "scheme": scheme}, **_pace(period, failures)}


def https_container(  # noqa: PLR0913 - all but the first two by keyword
    settings: Settings, name: str, *, command: str, args: list[str], port: int, mounts: list[Mount]
) -> Manifest:
    """Returns the container of a command of clusterregistry, which serves health checks over HTTPS."""

    def check(path: str, *, period: int, failures: int) -> Manifest:
        return probe(path, port=HTTPS, scheme="HTTPS", period=period, failures=failures)

    return {
        "name": name,
        "image": settings.image,
        "command": ["clusterregistry", command],
        "args": args,
        "ports": [{"name": HTTPS, "containerPort": port, "protocol": "TCP"}],
        "startupProbe": check("/livez", period=2, failures=60),
        "livenessProbe": check("/livez", period=10, failures=6),
        "readinessProbe": check("/readyz", period=5, failures=2),
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": container_security(),
        "volumeMounts": [mount.mount() for mount in mounts],
    }


def command_probe(command: list[str], *, period: int, failures: int) -> Manifest:
    return {"exec": {"command": command}, **_pace(period, failures)}


def _pace(period: int, failures: int) -> Manifest:
    return {"periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}


def spread(match: dict[str, str]) -> list[Manifest]:
    """Spreads replicas over the nodes, where there are enough."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": match},
        }
    ]


def claim_spec(settings: Settings) -> Manifest:
    """Returns the volume claim of the server's database, and of a member of etcd."""
    spec: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": settings.capacity}}}
    if settings.storage_class:
        spec["storageClassName"] = settings.storage_class
    return spec


def budgets(settings: Settings) -> list[Manifest]:
    """Lets a drain evict one pod of several at a time. A single pod has no budget, or its node could not be drained."""
    made = [budget(settings, settings.name, SERVER)] if settings.replicas > 1 else []
    return [*made, budget(settings, settings.etcd_name, ETCD)] if settings.storage is Storage.OWN_ETCD else made


def budget(settings: Settings, name: str, component: str) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(settings, name, component=component),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(settings, component)}},
    }
