"""Makes missing credentials and renews certificates that expire soon; all others are kept."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from clusterregistry.apimachinery import certificates
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.crinit.credentials.material import ADMIN, CONTROLLER, MASTERS, EtcdMaterial, Material, Pair
from clusterregistry.crinit.manifests import secrets as secret_names
from clusterregistry.crinit.settings import Mode, Settings, Storage

RENEWED_BEFORE = dt.timedelta(days=30)
_TOKEN_BYTES = 32
_PROGRAM = "clusterregistry"
"""The program after which certificates are named."""

Existing = Mapping[str, Mapping[str, bytes]]
"""The content of the existing Secrets, by ``ca``, ``serving`` and so on."""

Sign = Callable[[certificates.Authority, certificates.Key], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """``names`` are the host names and addresses of the server; ``now`` is in seconds since 1970."""

    settings: Settings
    names: tuple[str, ...]
    now: float


def material(wanted: Wanted, existing: Existing) -> Material:
    """Returns all credentials for the settings. Raises OperatorError when existing ones cannot be used."""
    settings = wanted.settings
    standalone = settings.mode is Mode.STANDALONE
    authority = _authority(existing, secret_names.AUTHORITY, now=wanted.now)
    return Material(
        authority=_pair_of(authority),
        serving=_serving(authority, wanted, existing),
        admin=_admin(authority, wanted, existing) if standalone else None,
        controller=_controller(authority, wanted, existing) if standalone and settings.controller else None,
        token=_token(existing) if settings.token_auth else "",
        etcd=_etcd(wanted, existing) if settings.storage is Storage.OWN_ETCD else None,
    )


def serving_names(settings: Settings, *reached_by: str) -> tuple[str, ...]:
    """Returns the names of the service in its cluster, loopback for port-forwarding, and the external addresses."""
    name, host = settings.name, settings.service_host
    inside = (name, f"{name}.{settings.namespace}", host, f"{host}.cluster.local", "localhost", "127.0.0.1")
    return tuple(dict.fromkeys((*inside, *filter(None, (settings.advertise_address, *reached_by)))))


def _serving(authority: certificates.Authority, wanted: Wanted, existing: Existing) -> Pair:
    def sign(by: certificates.Authority, key: certificates.Key) -> bytes:
        return certificates.serving_certificate(by, key, names=wanted.names, now=wanted.now, program=_PROGRAM)

    kept = _held(existing, secret_names.SERVING)
    return _kept_or_signed(authority, kept, sign, names=wanted.names, now=wanted.now)


def _admin(authority: certificates.Authority, wanted: Wanted, existing: Existing) -> Pair:
    def sign(by: certificates.Authority, key: certificates.Key) -> bytes:
        return certificates.client_certificate(by, key, user=ADMIN, group=MASTERS, now=wanted.now)

    return _kept_or_signed(authority, _held(existing, secret_names.CREDENTIALS), sign, names=(), now=wanted.now)


def _controller(authority: certificates.Authority, wanted: Wanted, existing: Existing) -> Pair:
    def sign(by: certificates.Authority, key: certificates.Key) -> bytes:
        return certificates.client_certificate(by, key, user=CONTROLLER, group="", now=wanted.now)

    return _kept_or_signed(authority, _held(existing, secret_names.CONTROLLER), sign, names=(), now=wanted.now)


def _token(existing: Existing) -> str:
    held = existing.get(secret_names.TOKENS, {}).get("token", b"").decode("ascii", "ignore").strip()
    return held or secrets.token_urlsafe(_TOKEN_BYTES)


def _etcd(wanted: Wanted, existing: Existing) -> EtcdMaterial:
    names = (*wanted.settings.etcd_hosts, wanted.settings.etcd_name, "localhost", "127.0.0.1")
    authority = _authority(existing, secret_names.ETCD_AUTHORITY, now=wanted.now)

    def sign_peer(by: certificates.Authority, key: certificates.Key) -> bytes:
        return certificates.peer_certificate(by, key, names=names, now=wanted.now, program=_PROGRAM)

    def sign_client(by: certificates.Authority, key: certificates.Key) -> bytes:
        return certificates.client_certificate(by, key, user=wanted.settings.name, group="", now=wanted.now)

    peer, client = _held(existing, secret_names.ETCD_PEER), _held(existing, secret_names.ETCD_CLIENT)
    return EtcdMaterial(
        authority=_pair_of(authority),
        peer=_kept_or_signed(authority, peer, sign_peer, names=names, now=wanted.now),
        client=_kept_or_signed(authority, client, sign_client, names=(), now=wanted.now),
    )


def _authority(existing: Existing, secret: str, *, now: float) -> certificates.Authority:
    held = existing.get(secret, {})
    if not held:
        return certificates.new_authority(certificates.new_key(), now=now, program=_PROGRAM)
    try:
        return certificates.Authority(_certificate(held["ca.crt"]), _key(held["ca.key"]))
    except (KeyError, ValueError, TypeError):
        # A new authority would lock out every client that trusts the old one: an operator has to decide on that.
        raise OperatorError(
            f"the Secret of the authority ({secret}) is damaged: ca.crt or ca.key cannot be read",
            remedy="restore the Secret, or delete it: then a new authority is made, and all certificates with it",
        ) from None


def _kept_or_signed(
    authority: certificates.Authority, kept: Pair | None, sign: Sign, *, names: tuple[str, ...], now: float
) -> Pair:
    """Returns the existing pair, a new certificate for its key if it expires soon or lacks a name, or a new pair."""
    try:
        if kept and _is_current(authority, _certificate(kept.certificate), names=names, now=now):
            return kept
        key = _key(kept.key) if kept else certificates.new_key()
    except (ValueError, TypeError):
        key = certificates.new_key()
    return Pair(sign(authority, key), certificates.key_pem(key))


def _is_current(
    authority: certificates.Authority, held: x509.Certificate, *, names: tuple[str, ...], now: float
) -> bool:
    lasts = held.not_valid_after_utc - RENEWED_BEFORE > dt.datetime.fromtimestamp(now, dt.UTC)
    ours = held.issuer == authority.certificate.subject
    return lasts and ours and set(names) <= set(certificates.names(held))


def _held(existing: Existing, secret: str) -> Pair | None:
    content = existing.get(secret, {})
    return Pair(content["tls.crt"], content["tls.key"]) if {"tls.crt", "tls.key"} <= content.keys() else None


def _pair_of(authority: certificates.Authority) -> Pair:
    return Pair(certificates.certificate_pem(authority.certificate), certificates.key_pem(authority.key))


def _certificate(content: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(content)


def _key(content: bytes) -> certificates.Key:
    held = load_pem_private_key(content, password=None)
    if not isinstance(held, certificates.Key):
        raise TypeError("a kind of key that cannot sign")
    return held
