"""Access to the registry and of the registry: service account and network policies."""

from __future__ import annotations

from clusterregistry.crinit.manifests import controller, etcd, server
from clusterregistry.crinit.manifests.objects import (
    CONTROLLER,
    ETCD,
    SERVER,
    Manifest,
    cluster_wide,
    labels,
    metadata,
    selector,
)
from clusterregistry.crinit.settings import Mode, Settings, Storage

RBAC = "rbac.authorization.k8s.io"
KUBE_SYSTEM = "kube-system"
POLICY_VERSION = "networking.k8s.io/v1"
POLICY_KIND = "NetworkPolicy"


def accounts(settings: Settings) -> list[Manifest]:
    """Returns the account of the registry in its host cluster. It has rights there only if it is aggregated."""
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(settings, settings.name),
        "automountServiceAccountToken": False,
    }
    return [account] if settings.mode is Mode.STANDALONE else [account, _delegator(settings), _reader(settings)]


def _delegator(settings: Settings) -> Manifest:
    """Allows token reviews and access reviews."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": cluster_wide(settings, "auth-delegator"), "labels": labels(settings)},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "system:auth-delegator"},
        "subjects": _subjects(settings),
    }


def _reader(settings: Settings) -> Manifest:
    """Allows to read the authorities of front proxies and clients."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {
            "name": cluster_wide(settings, "auth-reader"),
            "namespace": KUBE_SYSTEM,
            "labels": labels(settings),
        },
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "extension-apiserver-authentication-reader"},
        "subjects": _subjects(settings),
    }


def _subjects(settings: Settings) -> list[Manifest]:
    return [{"kind": "ServiceAccount", "name": settings.name, "namespace": settings.namespace}]


def network_policies(settings: Settings) -> list[Manifest]:
    """Opens the ports of server and controller to everything, and those of etcd to the pods of the registry only.

    Policies take effect where the network of the host cluster supports them; certificates are required everywhere.
    Egress is not restricted: webhooks, OpenID Connect, an external etcd and clusters may be anywhere.
    """
    if not settings.network_policy:
        return []
    # Clients come from anywhere, and so does the kube-apiserver of the host cluster, which is no pod.
    made = [_policy(settings, settings.name, SERVER, [{"ports": _port(server.PORT)}])]
    if settings.storage is Storage.OWN_ETCD:
        made.append(_of_etcd(settings))
    if settings.controller:
        # Probes and metrics.
        made.append(_policy(settings, settings.controller_name, CONTROLLER, [{"ports": _port(controller.PORT)}]))
    return made


def _of_etcd(settings: Settings) -> Manifest:
    client = {"ports": _port(etcd.CLIENT_PORT), "from": [_pods(settings, SERVER), _pods(settings, ETCD)]}
    peer = {"ports": _port(etcd.PEER_PORT), "from": [_pods(settings, ETCD)]}
    return _policy(settings, settings.etcd_name, ETCD, [client, peer])


def _policy(settings: Settings, name: str, component: str, ingress: list[Manifest]) -> Manifest:
    return {
        "apiVersion": POLICY_VERSION,
        "kind": POLICY_KIND,
        "metadata": metadata(settings, name, component=component),
        "spec": {
            "podSelector": {"matchLabels": selector(settings, component)},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }


def _pods(settings: Settings, component: str) -> Manifest:
    return {"podSelector": {"matchLabels": selector(settings, component)}}


def _port(number: int) -> list[Manifest]:
    return [{"protocol": "TCP", "port": number}]
