"""The service by which clients, or the host's kube-apiserver, reach the registry."""

from __future__ import annotations

from clusterregistry.crinit.manifests.objects import Manifest, metadata, selector
from clusterregistry.crinit.settings import Settings

PORT = 443
TARGET = "https"


def service(settings: Settings) -> Manifest:
    port: Manifest = {"name": "https", "port": PORT, "targetPort": TARGET, "protocol": "TCP"}
    if settings.node_port:
        port["nodePort"] = settings.node_port
    spec = {"type": settings.service_type.value, "selector": selector(settings), "ports": [port]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(settings, settings.name), "spec": spec}
