"""Credentials: made once, kept for ever, renewed when they end soon."""

from __future__ import annotations

import datetime as dt

import pytest
from cryptography import x509

from clusterregistry.apimachinery import certificates
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.crinit import settings_from_flags
from clusterregistry.crinit.credentials import issuance
from clusterregistry.crinit.credentials.material import Material
from clusterregistry.crinit.settings import Mode, Settings

NOW = 1_700_000_000.0
DAY = 86_400.0
SETTINGS = settings_from_flags.settings(
    Mode.STANDALONE, "fleet", {"replicas": "3", "apiserver-enable-token-auth": "true"}
)


def made(
    existing: issuance.Existing, *, now: float = NOW, names: tuple[str, ...] = (), settings: Settings = SETTINGS
) -> Material:
    wanted = issuance.Wanted(settings=settings, names=issuance.serving_names(settings, *names), now=now)
    return issuance.material(wanted, existing)


def stored(material: Material) -> dict[str, dict[str, bytes]]:
    """As the Secrets hold it."""
    assert material.admin is not None
    assert material.etcd is not None
    authority, etcd = material.authority, material.etcd
    return {
        "ca": {"ca.crt": authority.certificate, "ca.key": authority.key},
        "serving": {"tls.crt": material.serving.certificate, "tls.key": material.serving.key},
        "credentials": {"tls.crt": material.admin.certificate, "tls.key": material.admin.key},
        "tokens": {"token": material.token.encode()},
        "etcd-ca": {"ca.crt": etcd.authority.certificate, "ca.key": etcd.authority.key},
        "etcd-peer": {"tls.crt": etcd.peer.certificate, "tls.key": etcd.peer.key},
        "etcd-client": {"tls.crt": etcd.client.certificate, "tls.key": etcd.client.key},
    }


def certificate(content: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(content)


def test_what_is_there_is_kept_to_the_last_byte() -> None:
    first = made({})
    assert made(stored(first), now=NOW + 300 * DAY) == first


def test_a_certificate_that_ends_soon_is_renewed_for_the_same_key() -> None:
    first = made({})
    later = made(stored(first), now=NOW + 340 * DAY)
    assert first.admin
    assert later.admin
    assert later.authority == first.authority
    assert later.token == first.token
    assert later.admin.key == first.admin.key
    ends = certificate(later.admin.certificate).not_valid_after_utc
    assert ends > dt.datetime.fromtimestamp(NOW + 600 * DAY, dt.UTC)


def test_a_new_address_gets_a_serving_certificate_and_nothing_else_changes() -> None:
    first = made({})
    moved = made(stored(first), names=("192.0.2.7", "registry.example.com"))
    assert {"192.0.2.7", "registry.example.com", "fleet.clusterregistry.svc"} <= set(
        certificates.names(certificate(moved.serving.certificate))
    )
    assert moved.serving.key == first.serving.key
    assert (moved.authority, moved.admin, moved.token, moved.etcd) == (
        first.authority,
        first.admin,
        first.token,
        first.etcd,
    )


def test_what_is_missing_is_made_and_the_rest_stays() -> None:
    first = made({})
    held = stored(first)
    del held["serving"]
    again = made(held)
    assert again.authority == first.authority
    assert again.admin == first.admin
    certificate(again.serving.certificate).verify_directly_issued_by(certificate(first.authority.certificate))


def test_etcd_does_not_trust_the_authority_of_users() -> None:
    """Whoever has a client certificate for etcd may do everything there."""
    material = made({})
    assert material.etcd
    assert certificate(material.etcd.authority.certificate) != certificate(material.authority.certificate)
    peer = certificate(material.etcd.peer.certificate)
    peer.verify_directly_issued_by(certificate(material.etcd.authority.certificate))
    usages = peer.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert len(list(usages)) == 2
    assert "fleet-etcd-2.fleet-etcd.clusterregistry.svc" in certificates.names(peer)


def test_a_damaged_authority_is_an_error_and_never_replaced() -> None:
    with pytest.raises(OperatorError, match=r"authority .* is damaged"):
        made({"ca": {"ca.crt": b"x", "ca.key": b"y"}})


def test_an_aggregated_registry_has_no_administrator_of_its_own() -> None:
    material = made({}, settings=settings_from_flags.settings(Mode.AGGREGATED, "fleet", {}))
    assert (material.admin, material.token, material.etcd) == (None, "", None)


def test_the_certificate_of_the_controller_is_made_kept_and_given_up_with_the_controller() -> None:
    flags = {"with-controller": "true", "replicas": "3", "apiserver-enable-token-auth": "true"}
    settings = settings_from_flags.settings(Mode.STANDALONE, "fleet", flags)
    before = made({})
    first = made(stored(before), settings=settings)
    assert first.controller
    certificate(first.controller.certificate).verify_directly_issued_by(certificate(before.authority.certificate))
    held = {**stored(first), "controller": {"tls.crt": first.controller.certificate, "tls.key": first.controller.key}}
    assert made(held, settings=settings) == first
    later = made(held, settings=settings, now=NOW + 340 * DAY).controller
    assert later
    assert later.key == first.controller.key
    assert later.certificate != first.controller.certificate
    assert made(held) == before
    aggregated = settings_from_flags.settings(Mode.AGGREGATED, "fleet", {"with-controller": "true"})
    assert made({}, settings=aggregated).controller is None
