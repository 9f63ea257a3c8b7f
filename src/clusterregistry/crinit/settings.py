"""The settings of a registry: checked and complete."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from clusterregistry import __version__

DEFAULT_NAMESPACE = "clusterregistry"
DEFAULT_IMAGE = f"clusterregistry:{__version__}"
DEFAULT_ETCD_IMAGE = "registry.k8s.io/etcd:3.6.4-0"
DEFAULT_CAPACITY = "10Gi"
DEFAULT_CONTROLLER_REPLICAS = 2
"""One leads, the other takes over within seconds."""

ETCD_MEMBERS = 3
"""Three members survive the loss of one; a fourth would not survive the loss of a second one."""

LONGEST_NAME = 40
"""Names of objects contain it, and names of pods must be host names."""

_ARGUMENT_BORDER = re.compile(r",(?=--)")


class Mode(StrEnum):
    STANDALONE = "standalone"
    AGGREGATED = "aggregated"


class Storage(StrEnum):
    """Where objects are stored."""

    SQLITE = "sqlite"
    EXTERNAL_ETCD = "external-etcd"
    OWN_ETCD = "own-etcd"


class ServiceType(StrEnum):
    LOAD_BALANCER = "LoadBalancer"
    NODE_PORT = "NodePort"
    CLUSTER_IP = "ClusterIP"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdFiles:
    """PEM for an external etcd; empty where it needs none."""

    authority: bytes = b""
    certificate: bytes = b""
    key: bytes = b""

    def __bool__(self) -> bool:
        return bool(self.authority or self.certificate)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """The controller that observes the clusters of a registry and writes their status."""

    replicas: int = DEFAULT_CONTROLLER_REPLICAS
    access_config: str = ""
    """The content of access.yaml; empty: a file for each cluster in the credentials folder."""
    argument_overrides: tuple[str, ...] = ()


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
    controller: ControllerSettings | None = None

    @property
    def storage(self) -> Storage:
        if self.etcd_servers:
            return Storage.EXTERNAL_ETCD
        return Storage.OWN_ETCD if self.replicas > 1 else Storage.SQLITE

    @property
    def service_host(self) -> str:
        """The name of the service in the host cluster."""
        return f"{self.name}.{self.namespace}.svc"

    @property
    def controller_name(self) -> str:
        return f"{self.name}-controller"

    @property
    def etcd_name(self) -> str:
        return f"{self.name}-etcd"

    @property
    def etcd_hosts(self) -> tuple[str, ...]:
        """The host names of our own etcd members, stable over restarts."""
        return tuple(
            f"{self.etcd_name}-{number}.{self.etcd_name}.{self.namespace}.svc" for number in range(ETCD_MEMBERS)
        )


def split_arguments(text: str) -> tuple[str, ...]:
    """Splits ``--a=1,--b=2,3`` into ``--a=1`` and ``--b=2,3``: only a comma before dashes separates arguments."""
    return tuple(part for part in _ARGUMENT_BORDER.split(text) if part)
