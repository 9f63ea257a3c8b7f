"""The Secrets, one for each reader. No pod mounts the one with the key of an authority."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from clusterregistry.crinit.credentials.material import Material, Pair
from clusterregistry.crinit.manifests.objects import CONTROLLER as CONTROLLER_COMPONENT
from clusterregistry.crinit.manifests.objects import ETCD, SERVER, Manifest, metadata
from clusterregistry.crinit.settings import Mode, Settings, Storage

AUTHORITY = "ca"
SERVING = "serving"
CREDENTIALS = "credentials"
TOKENS = "tokens"
CONTROLLER = "controller"
CLUSTERS = "clusters"
"""Credentials of clusters for the controller: an operator makes it and fills it, never crinit."""

ETCD_AUTHORITY = "etcd-ca"
ETCD_PEER = "etcd-peer"
ETCD_CLIENT = "etcd-client"
ALL = (AUTHORITY, SERVING, CREDENTIALS, TOKENS, CONTROLLER, ETCD_AUTHORITY, ETCD_PEER, ETCD_CLIENT)


def name_of(settings: Settings, secret: str) -> str:
    return f"{settings.name}-{secret}"


def secrets(settings: Settings, material: Material) -> list[Manifest]:
    return [
        *_serving(settings, material),
        *_standalone(settings, material),
        *_controller(settings, material),
        *_etcd(settings, material),
    ]


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


def _controller(settings: Settings, material: Material) -> list[Manifest]:
    """Returns the identity of the controller in a standalone registry. If aggregated, it has a service account."""
    if material.controller is None:
        return []
    files = {**_tls(material.controller), "ca.crt": material.authority.certificate}
    content = {**files, "kubeconfig": json.dumps(_kubeconfig(settings)).encode()}
    return [_secret(settings, CONTROLLER, content, CONTROLLER_COMPONENT)]


def _kubeconfig(settings: Settings) -> Manifest:
    """Names the files beside it, so that a renewed certificate counts without a restart."""
    user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    server = f"https://{settings.service_host}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "registry",
        "clusters": [{"name": "registry", "cluster": {"server": server, "certificate-authority": "ca.crt"}}],
        "users": [{"name": "controller", "user": user}],
        "contexts": [{"name": "registry", "context": {"cluster": "registry", "user": "controller"}}],
    }


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
