"""The Deployment of the server."""

from __future__ import annotations

from clusterregistry.crinit.manifests import arguments, pods, secrets, services, volumes
from clusterregistry.crinit.manifests.objects import Manifest, labels, metadata, selector
from clusterregistry.crinit.settings import Mode, Settings, Storage

CONTAINER = "clusterregistry"


def workload(settings: Settings) -> list[Manifest]:
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata(settings, settings.name),
            "spec": {
                "replicas": settings.replicas,
                "strategy": _strategy(settings),
                "selector": {"matchLabels": selector(settings)},
                "template": {"metadata": {"labels": labels(settings)}, "spec": _pod(settings)},
            },
        }
    ]


def _strategy(settings: Settings) -> Manifest:
    """A volume is attached to one node, and SQLite's file belongs to one process: the old pod goes first."""
    if settings.storage is Storage.SQLITE:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def _pod(settings: Settings) -> Manifest:
    mounts = _mounts(settings)
    pod: Manifest = {
        "serviceAccountName": settings.name,
        # The pod decides, so that an aggregated registry has its token and a standalone one has none.
        "automountServiceAccountToken": settings.mode is Mode.AGGREGATED,
        "securityContext": pods.pod_security(),
        "containers": [_container(settings, mounts)],
        "volumes": [mount.volume() for mount in mounts],
    }
    if settings.replicas > 1:
        pod["topologySpreadConstraints"] = pods.spread(selector(settings))
    return pod


def _container(settings: Settings, mounts: list[pods.Mount]) -> Manifest:
    return {
        "name": CONTAINER,
        "image": settings.image,
        "command": ["clusterregistry", settings.mode.value],
        "args": arguments.arguments(settings),
        "ports": [{"name": services.TARGET, "containerPort": arguments.PORT, "protocol": "TCP"}],
        "startupProbe": _probe("/livez", period=2, failures=60),
        "livenessProbe": _probe("/livez", period=10, failures=6),
        "readinessProbe": _probe("/readyz", period=5, failures=2),
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": pods.container_security(),
        "volumeMounts": [mount.mount() for mount in mounts],
    }


def _probe(path: str, *, period: int, failures: int) -> Manifest:
    return pods.probe(path, port=services.TARGET, scheme="HTTPS", period=period, failures=failures)


def _mounts(settings: Settings) -> list[pods.Mount]:
    mounts = [
        _data(settings),
        pods.empty("tmp", path="/tmp"),  # noqa: S108 - the pod's own, and the root file system is read-only
        pods.secret("serving", path=arguments.SERVING, secret_name=secrets.name_of(settings, secrets.SERVING)),
    ]
    if settings.token_auth:
        name = secrets.name_of(settings, secrets.TOKENS)
        mounts.append(pods.secret("tokens", path=arguments.TOKENS, secret_name=name, only=("tokens.csv",)))
    if secrets.etcd_files(settings):
        name = secrets.name_of(settings, secrets.ETCD_CLIENT)
        mounts.append(pods.secret("etcd", path=arguments.ETCD, secret_name=name))
    return mounts


def _data(settings: Settings) -> pods.Mount:
    if settings.storage is Storage.SQLITE and settings.persistent:
        return pods.claim("data", path=arguments.DATA, claim_name=volumes.data_claim(settings))
    return pods.empty("data", path=arguments.DATA)
