from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.pki import provision
from clusterregistry.apiserver.pki.files import Layout
from clusterregistry.apiserver.pki.tls import CIPHER_SUITES, read_bundle, server_context
from tests.apiserver.pki import handshakes
from tests.apiserver.pki.wants import layout_in, wanted


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    directory = tmp_path_factory.mktemp("pki")
    provision.provision(wanted(directory))
    return layout_in(directory)


def server(layout: Layout, minimum: str = "VersionTLS12") -> ssl.SSLContext:
    return server_context(
        certificate=layout.serving_certificate,
        key=layout.serving_key,
        client_cas=[read_bundle(layout.ca_certificate)],
        minimum=minimum,
    )


def shake_hands(server_side: ssl.SSLContext, client_side: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """A handshake in memory; answers the server's side of it."""
    return handshakes.shake_hands(server_side, client_side, name)[0]


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_clients_that_trust_the_ca_get_through_without_a_certificate(layout: Layout, name: str) -> None:
    client = ssl.create_default_context(cafile=layout.ca_certificate)
    assert shake_hands(server(layout), client, name).getpeercert(binary_form=True) is None


def test_the_administrators_certificate_arrives(layout: Layout) -> None:
    client = ssl.create_default_context(cafile=layout.ca_certificate)
    client.load_cert_chain(layout.admin_certificate, layout.admin_key)
    expected = ssl.PEM_cert_to_DER_cert(layout.admin_certificate.read_text())
    assert shake_hands(server(layout), client, "localhost").getpeercert(binary_form=True) == expected


def test_a_certificate_for_servers_does_not_pass_for_a_client(layout: Layout) -> None:
    client = ssl.create_default_context(cafile=layout.ca_certificate)
    client.load_cert_chain(layout.serving_certificate, layout.serving_key)
    with pytest.raises(ssl.SSLError):
        shake_hands(server(layout), client, "localhost")


def test_a_certificate_of_another_authority_is_refused(layout: Layout, tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path))
    other = layout_in(tmp_path)
    client = ssl.create_default_context(cafile=layout.ca_certificate)
    client.load_cert_chain(other.admin_certificate, other.admin_key)
    with pytest.raises(ssl.SSLError):
        shake_hands(server(layout), client, "localhost")


def test_the_oldest_version_is_the_one_that_was_asked_for(layout: Layout) -> None:
    client = ssl.create_default_context(cafile=layout.ca_certificate)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shake_hands(server(layout), client, "localhost").version() == "TLSv1.2"
    with pytest.raises(ssl.SSLError):
        shake_hands(server(layout, "VersionTLS13"), client, "localhost")


def test_only_suites_with_forward_secrecy_and_authenticated_encryption_are_offered(layout: Layout) -> None:
    offered = {suite["name"] for suite in server(layout).get_ciphers() if suite["protocol"] != "TLSv1.3"}
    assert offered == set(CIPHER_SUITES.values())
    client = ssl.create_default_context(cafile=layout.ca_certificate)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    for weak in ("ECDHE-ECDSA-AES128-SHA256", "AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-SHA"):
        client.set_ciphers(weak)
        with pytest.raises(ssl.SSLError):
            shake_hands(server(layout), client, "localhost")


def test_one_suite_can_be_chosen(layout: Layout) -> None:
    context = server_context(
        certificate=layout.serving_certificate,
        key=layout.serving_key,
        client_cas=[],
        minimum="VersionTLS12",
        suites=["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"],
    )
    client = ssl.create_default_context(cafile=layout.ca_certificate)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    agreed = shake_hands(context, client, "localhost").cipher()
    assert agreed is not None
    assert agreed[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


def test_files_that_cannot_be_used_are_errors_with_a_remedy(layout: Layout, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("garbage")
    good, authority = (layout.serving_certificate, layout.serving_key), layout.ca_certificate
    wrong = [
        (garbage, good[1], authority),
        (good[0], layout.admin_key, authority),
        (*good, garbage),
        (*good, tmp_path / "nothing.pem"),
    ]
    for certificate, key, ca in wrong:
        with pytest.raises(CertificateError) as raised:
            server_context(certificate=certificate, key=key, client_cas=[read_bundle(ca)], minimum="VersionTLS12")
        assert raised.value.remedy


def test_a_key_with_a_passphrase_is_refused_without_asking(layout: Layout, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415

    locked = tmp_path / "locked.key"
    key = form.load_pem_private_key(layout.serving_key.read_bytes(), None)
    encryption = form.BestAvailableEncryption(b"secret")
    locked.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encryption))
    with pytest.raises(CertificateError, match="cannot be used for TLS"):
        server_context(certificate=layout.serving_certificate, key=locked, client_cas=[], minimum="VersionTLS12")
