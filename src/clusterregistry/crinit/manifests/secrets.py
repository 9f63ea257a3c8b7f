"""The Secrets, one for each reader. No pod mounts the one with the key of an authority."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from clusterregistry.crinit.credentials.material import Material, Pair
from clusterregistry.crinit.manifests.objects import ETCD, SERVER, Manifest, metadata
from clusterregistry.crinit.settings import Mode, Settings, Storage

AUTHORITY = "ca"
SERVING = "serving"
CREDENTIALS = "credentials"
TOKENS = "tokens"
ETCD_AUTHORITY = "etcd-ca"
ETCD_PEER = "etcd-peer"
ETCD_CLIENT = "etcd-client"
ALL = (AUTHORITY, SERVING, CREDENTIALS, TOKENS, ETCD_AUTHORITY, ETCD_PEER, ETCD_CLIENT)


def name_of(settings: Settings, secret: str) -> str:
    return f"{settings.name}-{secret}"


def secrets(settings: Settings, material: Material) -> list[Manifest]:
    return [*_serving(settings, material), *_standalone(settings, material), *_etcd(settings, material)]


def _serving(settings: Settings, material: Material) -> list[Manifest]:
    authority = material.authority.certificate
    return [
        _secret(settings, AUTHORITY, {"ca.crt": authority, "ca.key": material.authority.key}),
        _secret(settings, SERVING, {**_tls(material.serving), "ca.crt": authority}),
    ]


def _standalone(settings: Settings, material: Material) -> list[Manifest]:
    if settings.mode is not Mode.STANDALONE:
        return []
    made = []
    if material.admin is not None:
        made.append(_secret(settings, CREDENTIALS, _tls(material.admin)))
    if settings.token_auth:
        made.append(_secret(settings, TOKENS, {"token": material.token.encode(), "tokens.csv": material.token_file()}))
    return made


def _etcd(settings: Settings, material: Material) -> list[Manifest]:
    if settings.storage is Storage.EXTERNAL_ETCD and settings.etcd_files:
        files = settings.etcd_files
        return [_secret(settings, ETCD_CLIENT, _named(files.authority, Pair(files.certificate, files.key)))]
    if settings.storage is not Storage.OWN_ETCD or material.etcd is None:
        return []
    authority = material.etcd.authority
    return [
        _secret(settings, ETCD_AUTHORITY, {"ca.crt": authority.certificate, "ca.key": authority.key}, ETCD),
        _secret(settings, ETCD_PEER, _named(authority.certificate, material.etcd.peer), ETCD),
        _secret(settings, ETCD_CLIENT, _named(authority.certificate, material.etcd.client)),
    ]


def etcd_files(settings: Settings) -> frozenset[str]:
    """Returns the names of the files in the Secret of the server's etcd client; none without such a Secret."""
    if settings.storage is Storage.OWN_ETCD:
        return frozenset({"ca.crt", "tls.crt", "tls.key"})
    files = settings.etcd_files
    return frozenset(_named(files.authority, Pair(files.certificate, files.key)))


def _named(authority: bytes, pair: Pair) -> dict[str, bytes]:
    """Leaves out empty files: an etcd may require no certificate, or have one that the system trusts."""
    return {name: content for name, content in {"ca.crt": authority, **_tls(pair)}.items() if content}


def _tls(pair: Pair) -> dict[str, bytes]:
    return {"tls.crt": pair.certificate, "tls.key": pair.key}


def _secret(settings: Settings, secret: str, content: Mapping[str, bytes], component: str = SERVER) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(settings, name_of(settings, secret), component=component),
        "type": "Opaque",
        "data": {name: base64.b64encode(held).decode() for name, held in content.items()},
    }
