"""Three members of etcd for the replicas: a StatefulSet, and the service that gives each member its name.

Each port requires a certificate of etcd's own authority. etcd's plain port for health and metrics is not opened: a
kubelet reaches it only by the pod network, and so would every other pod. The probes run ``etcdctl`` in the container
instead, with the member's own certificate; metrics are at the client port, for clients with a certificate.
"""

from __future__ import annotations

from clusterregistry.crinit.manifests import pods, secrets
from clusterregistry.crinit.manifests.objects import ETCD, Manifest, labels, metadata, selector
from clusterregistry.crinit.settings import ETCD_MEMBERS, Settings, Storage

CLIENT_PORT = 2379
PEER_PORT = 2380
DATA = "/var/lib/etcd"
CERTIFICATES = "/etc/etcd/certificates"


def members(settings: Settings) -> list[Manifest]:
    return [_service(settings), _stateful_set(settings)] if settings.storage is Storage.OWN_ETCD else []


def _service(settings: Settings) -> Manifest:
    """Members need each other's address to become ready."""
    ports = {"client": CLIENT_PORT, "peer": PEER_PORT}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(settings, settings.etcd_name, component=ETCD),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector(settings, ETCD),
            "ports": [
                {"name": name, "port": port, "targetPort": name, "protocol": "TCP"} for name, port in ports.items()
            ],
        },
    }


def _stateful_set(settings: Settings) -> Manifest:
    spec: Manifest = {
        "serviceName": settings.etcd_name,
        "replicas": ETCD_MEMBERS,
        # All at once: the first member alone has no majority, and would wait for the second for ever.
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": selector(settings, ETCD)},
        "template": {"metadata": {"labels": labels(settings, ETCD)}, "spec": _pod(settings)},
    }
    if settings.persistent:
        claim = {"metadata": {"name": "data", "labels": labels(settings, ETCD)}, "spec": pods.claim_spec(settings)}
        spec["volumeClaimTemplates"] = [claim]
    described = metadata(settings, settings.etcd_name, component=ETCD)
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": described, "spec": spec}


def _pod(settings: Settings) -> Manifest:
    mounts = _mounts(settings)
    from_claim = {"data"} if settings.persistent else set()
    return {
        "serviceAccountName": settings.name,
        "automountServiceAccountToken": False,
        "securityContext": pods.pod_security(),
        "topologySpreadConstraints": pods.spread(selector(settings, ETCD)),
        "containers": [_container(settings, mounts)],
        "volumes": [mount.volume() for mount in mounts if mount.name not in from_claim],
    }


def _mounts(settings: Settings) -> list[pods.Mount]:
    name = secrets.name_of(settings, secrets.ETCD_PEER)
    return [pods.empty("data", path=DATA), pods.secret("certificates", path=CERTIFICATES, secret_name=name)]


def _container(settings: Settings, mounts: list[pods.Mount]) -> Manifest:
    ports = {"client": CLIENT_PORT, "peer": PEER_PORT}
    return {
        "name": "etcd",
        "image": settings.etcd_image,
        "command": ["etcd"],
        "args": _arguments(settings),
        "env": _environment(),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        # A member that runs answers "status" without the others; before it has once joined them it answers nothing.
        "startupProbe": _probe("status", period=10, failures=60),
        "livenessProbe": _probe("status", period=10, failures=6),
        "readinessProbe": _probe("health", period=5, failures=3),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": pods.container_security(),
        "volumeMounts": [mount.mount() for mount in mounts],
    }


def _environment() -> list[Manifest]:
    """With these variables ``etcdctl`` needs no flags in the container: for the probes, and for `kubectl exec`."""
    etcdctl = {
        "ETCDCTL_ENDPOINTS": f"https://127.0.0.1:{CLIENT_PORT}",
        "ETCDCTL_CACERT": f"{CERTIFICATES}/ca.crt",
        "ETCDCTL_CERT": f"{CERTIFICATES}/tls.crt",
        "ETCDCTL_KEY": f"{CERTIFICATES}/tls.key",
    }
    named = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return [named, *({"name": name, "value": value} for name, value in etcdctl.items())]


def _arguments(settings: Settings) -> list[str]:
    """The kubelet replaces $(POD_NAME): the members differ in nothing else."""
    own = f"$(POD_NAME).{settings.etcd_name}.{settings.namespace}.svc"
    peers = (f"{host.partition('.')[0]}=https://{host}:{PEER_PORT}" for host in settings.etcd_hosts)
    return [
        "--name=$(POD_NAME)",
        f"--data-dir={DATA}/data",
        f"--listen-client-urls=https://0.0.0.0:{CLIENT_PORT}",
        f"--advertise-client-urls=https://{own}:{CLIENT_PORT}",
        f"--listen-peer-urls=https://0.0.0.0:{PEER_PORT}",
        f"--initial-advertise-peer-urls=https://{own}:{PEER_PORT}",
        f"--initial-cluster={','.join(peers)}",
        f"--initial-cluster-token={settings.namespace}-{settings.name}",
        "--client-cert-auth=true",
        f"--trusted-ca-file={CERTIFICATES}/ca.crt",
        f"--cert-file={CERTIFICATES}/tls.crt",
        f"--key-file={CERTIFICATES}/tls.key",
        "--peer-client-cert-auth=true",
        f"--peer-trusted-ca-file={CERTIFICATES}/ca.crt",
        f"--peer-cert-file={CERTIFICATES}/tls.crt",
        f"--peer-key-file={CERTIFICATES}/tls.key",
    ]


def _probe(question: str, *, period: int, failures: int) -> Manifest:
    command = ["etcdctl", "endpoint", question, "--command-timeout=4s"]
    return pods.command_probe(command, period=period, failures=failures)
