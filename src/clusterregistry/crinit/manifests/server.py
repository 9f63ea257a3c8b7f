"""The server: its Deployment with the command line, its Service, and its volume."""

from __future__ import annotations

from clusterregistry.crinit.manifests import etcd, pods, secrets
from clusterregistry.crinit.manifests.objects import Manifest, labels, metadata, selector
from clusterregistry.crinit.settings import Mode, Settings, Storage

CONTAINER = "clusterregistry"
PORT = 8443
SERVICE_PORT = 443
_DATA = "/var/lib/clusterregistry"
_SERVING = "/etc/clusterregistry/serving"
_TOKENS = "/etc/clusterregistry/tokens"
_ETCD = "/etc/clusterregistry/etcd"


def deployment(settings: Settings) -> Manifest:
    return {
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


def _strategy(settings: Settings) -> Manifest:
    """A volume is attached to one node, and one process owns SQLite's file: the old pod must end first."""
    if settings.storage is Storage.SQLITE:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def _pod(settings: Settings) -> Manifest:
    mounts = _mounts(settings)
    pod: Manifest = {
        "serviceAccountName": settings.name,
        # Set in the pod, so that an aggregated registry has its token and a standalone one has none.
        "automountServiceAccountToken": settings.mode is Mode.AGGREGATED,
        "securityContext": pods.pod_security(),
        "containers": [_container(settings, mounts)],
        "volumes": [mount.volume() for mount in mounts],
    }
    if settings.replicas > 1:
        pod["topologySpreadConstraints"] = pods.spread(selector(settings))
    return pod


def _container(settings: Settings, mounts: list[pods.Mount]) -> Manifest:
    args = pods.arguments(_own_arguments(settings), settings.argument_overrides)
    return pods.https_container(settings, CONTAINER, command=settings.mode.value, args=args, port=PORT, mounts=mounts)


def _mounts(settings: Settings) -> list[pods.Mount]:
    mounts = [
        _data(settings),
        pods.empty("tmp", path="/tmp"),  # noqa: S108 - the pod's own, and the root file system is read-only
        pods.secret("serving", path=_SERVING, secret_name=secrets.name_of(settings, secrets.SERVING)),
    ]
    if settings.token_auth:
        name = secrets.name_of(settings, secrets.TOKENS)
        mounts.append(pods.secret("tokens", path=_TOKENS, secret_name=name, only=("tokens.csv",)))
    if secrets.etcd_files(settings):
        name = secrets.name_of(settings, secrets.ETCD_CLIENT)
        mounts.append(pods.secret("etcd", path=_ETCD, secret_name=name))
    return mounts


def _data(settings: Settings) -> pods.Mount:
    if settings.storage is Storage.SQLITE and settings.persistent:
        return pods.claim("data", path=_DATA, claim_name=_data_claim(settings))
    return pods.empty("data", path=_DATA)


def _own_arguments(settings: Settings) -> list[str]:
    own = [
        "--bind-address=0.0.0.0",
        f"--secure-port={PORT}",
        f"--data-dir={_DATA}",
        f"--tls-cert-file={_SERVING}/tls.crt",
        f"--tls-private-key-file={_SERVING}/tls.key",
    ]
    if settings.mode is Mode.STANDALONE:
        own += [f"--advertise-address={settings.service_host}", f"--client-ca-file={_SERVING}/ca.crt"]
    if settings.token_auth:
        own.append(f"--token-auth-file={_TOKENS}/tokens.csv")
    if settings.audit:
        # The host cluster collects and rotates the logs of a pod; a file would fill the volume of the data.
        own.append("--audit-log-path=-")
    return [*own, *_etcd_arguments(settings)]


def _etcd_arguments(settings: Settings) -> list[str]:
    if settings.storage is Storage.SQLITE:
        return []
    held = secrets.etcd_files(settings)
    files = {"ca.crt": "--etcd-cafile", "tls.crt": "--etcd-certfile", "tls.key": "--etcd-keyfile"}
    return [
        f"--etcd-servers={','.join(_etcd_servers(settings))}",
        *(f"{flag}={_ETCD}/{name}" for name, flag in files.items() if name in held),
    ]


def _etcd_servers(settings: Settings) -> tuple[str, ...]:
    own = tuple(f"https://{host}:{etcd.CLIENT_PORT}" for host in settings.etcd_hosts)
    return settings.etcd_servers or own


def service(settings: Settings) -> Manifest:
    """Returns the Service by which clients, or kube-apiserver of the host cluster, reach the registry."""
    port: Manifest = {"name": "https", "port": SERVICE_PORT, "targetPort": pods.HTTPS, "protocol": "TCP"}
    if settings.node_port:
        port["nodePort"] = settings.node_port
    spec = {"type": settings.service_type.value, "selector": selector(settings), "ports": [port]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(settings, settings.name), "spec": spec}


def claims(settings: Settings) -> list[Manifest]:
    """Returns the volume of SQLite's file. The StatefulSet of etcd makes its own volumes."""
    if settings.storage is not Storage.SQLITE or not settings.persistent:
        return []
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata(settings, _data_claim(settings)),
            "spec": pods.claim_spec(settings),
        }
    ]


def _data_claim(settings: Settings) -> str:
    return f"{settings.name}-data"
