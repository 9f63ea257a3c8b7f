"""The secret material of one registry."""

from __future__ import annotations

from dataclasses import dataclass

ADMIN = "clusterregistry-admin"
MASTERS = "system:masters"
CONTROLLER = "system:clusterregistry:controller"
"""The user as which the controller calls a standalone registry, which has a role of the same name for it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMaterial:
    """Certificates of an authority that only etcd trusts: each of them may read and write everything."""

    authority: Pair
    peer: Pair
    client: Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The credentials of a registry; ``admin`` is None if aggregated, ``controller`` also without a controller."""

    authority: Pair
    serving: Pair
    admin: Pair | None = None
    controller: Pair | None = None
    token: str = ""
    etcd: EtcdMaterial | None = None

    def token_file(self) -> bytes:
        """Returns the token file in the format of kube-apiserver."""
        return f'{self.token},{ADMIN},{ADMIN},"{MASTERS}"\n'.encode()
