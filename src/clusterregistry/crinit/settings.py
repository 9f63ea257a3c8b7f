"""What to deploy: checked, complete, and free of where it came from."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from clusterregistry import __version__

DEFAULT_NAMESPACE = "clusterregistry"
DEFAULT_IMAGE = f"clusterregistry:{__version__}"
DEFAULT_ETCD_IMAGE = "registry.k8s.io/etcd:3.6.4-0"
DEFAULT_CAPACITY = "10Gi"
ETCD_MEMBERS = 3
"""One may be lost, and a fourth would not let a second one be lost."""

LONGEST_NAME = 40
"""Names of objects are made of it, and those of pods must stay host names."""

_ARGUMENT_BORDER = re.compile(r",(?=--)")


class Mode(StrEnum):
    STANDALONE = "standalone"
    AGGREGATED = "aggregated"


class Storage(StrEnum):
    """Where the objects are kept."""

    SQLITE = "sqlite"
    EXTERNAL_ETCD = "external-etcd"
    OWN_ETCD = "own-etcd"


class ServiceType(StrEnum):
    LOAD_BALANCER = "LoadBalancer"
    NODE_PORT = "NodePort"
    CLUSTER_IP = "ClusterIP"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdFiles:
    """PEM of what an etcd of one's own wants and shows; empty where it needs none."""

    authority: bytes = b""
    certificate: bytes = b""
    key: bytes = b""

    def __bool__(self) -> bool:
        return bool(self.authority or self.certificate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One registry in a host cluster."""

    mode: Mode
    name: str
    namespace: str = DEFAULT_NAMESPACE
    image: str = DEFAULT_IMAGE
    replicas: int = 1
    service_type: ServiceType = ServiceType.LOAD_BALANCER
    advertise_address: str = ""
    node_port: int = 0
    token_auth: bool = False
    audit: bool = True
    network_policy: bool = True
    persistent: bool = True
    capacity: str = DEFAULT_CAPACITY
    storage_class: str = ""
    etcd_image: str = DEFAULT_ETCD_IMAGE
    etcd_servers: tuple[str, ...] = ()
    etcd_files: EtcdFiles = field(default_factory=EtcdFiles)
    argument_overrides: tuple[str, ...] = ()

    @property
    def storage(self) -> Storage:
        if self.etcd_servers:
            return Storage.EXTERNAL_ETCD
        return Storage.OWN_ETCD if self.replicas > 1 else Storage.SQLITE

    @property
    def service_host(self) -> str:
        """The name of the service inside of the host cluster."""
        return f"{self.name}.{self.namespace}.svc"

    @property
    def etcd_name(self) -> str:
        return f"{self.name}-etcd"

    @property
    def etcd_hosts(self) -> tuple[str, ...]:
        """The names of the etcd members of our own, each stable over restarts."""
        return tuple(
            f"{self.etcd_name}-{number}.{self.etcd_name}.{self.namespace}.svc" for number in range(ETCD_MEMBERS)
        )


def split_arguments(text: str) -> tuple[str, ...]:
    """``--a=1,--b=2,3`` as ``--a=1`` and ``--b=2,3``: a comma parts arguments only in front of dashes."""
    return tuple(part for part in _ARGUMENT_BORDER.split(text) if part)
