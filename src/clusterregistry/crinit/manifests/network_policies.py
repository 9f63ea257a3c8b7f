"""Who may reach the pods: everyone the server's port, only our own pods those of etcd.

They take effect where the network of the host cluster knows policies; certificates are asked for everywhere.
What the pods may reach is not restricted: webhooks, OpenID Connect and an etcd of the user's may be anywhere.
"""

from __future__ import annotations

from clusterregistry.crinit.manifests import arguments, etcd
from clusterregistry.crinit.manifests.objects import ETCD, SERVER, Manifest, metadata, selector
from clusterregistry.crinit.settings import Settings, Storage

VERSION = "networking.k8s.io/v1"
KIND = "NetworkPolicy"


def network_policies(settings: Settings) -> list[Manifest]:
    if not settings.network_policy:
        return []
    # Clients come from anywhere, and so does the host's kube-apiserver, which is no pod.
    server = _policy(settings, settings.name, SERVER, [{"ports": _port(arguments.PORT)}])
    if settings.storage is not Storage.OWN_ETCD:
        return [server]
    client = {"ports": _port(arguments.ETCD_CLIENT_PORT), "from": [_pods(settings, SERVER), _pods(settings, ETCD)]}
    peer = {"ports": _port(etcd.PEER_PORT), "from": [_pods(settings, ETCD)]}
    return [server, _policy(settings, settings.etcd_name, ETCD, [client, peer])]


def _policy(settings: Settings, name: str, component: str, ingress: list[Manifest]) -> Manifest:
    return {
        "apiVersion": VERSION,
        "kind": KIND,
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
