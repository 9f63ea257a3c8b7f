"""All that is secret about one registry."""

from __future__ import annotations

from dataclasses import dataclass

ADMIN = "clusterregistry-admin"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMaterial:
    """An authority that only etcd trusts: whoever has a certificate of it may read and write everything."""

    authority: Pair
    peer: Pair
    client: Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """``admin`` is None where the host cluster knows the users."""

    authority: Pair
    serving: Pair
    admin: Pair | None = None
    token: str = ""
    etcd: EtcdMaterial | None = None

    def token_file(self) -> bytes:
        """In kube-apiserver's format."""
        return f'{self.token},{ADMIN},{ADMIN},"{MASTERS}"\n'.encode()
