"""Which certificates a client has shown, in handshakes of every kind."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from clusterregistry.apiserver.http import transport
from clusterregistry.apiserver.pki.tls import read_bundle, server_context
from tests.apiserver.pki.handshakes import shake_hands
from tests.apiserver.server.authorities import Holder, root


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Holder:
    return root(tmp_path_factory.mktemp("peers"), "root")


@pytest.fixture(scope="module")
def jane(authority: Holder) -> Holder:
    return authority.authority("between").issue("jane")


@pytest.fixture(scope="module")
def context(authority: Holder) -> ssl.SSLContext:
    server = authority.issue("server", extensions="subjectAltName=DNS:localhost\n")
    bundle = read_bundle(authority.certificate)
    return server_context(certificate=server.certificate, key=server.key, client_cas=[bundle], minimum="VersionTLS12")


def client(chain: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """It trusts everybody: a client that knows authorities would send them along."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if chain is not None:
        made.load_cert_chain(chain, key)
    return made


def der(path: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(path.read_text())


def test_a_connection_without_tls_or_without_a_certificate_shows_none(context: ssl.SSLContext) -> None:
    assert transport.peer_certificates(None) == ()
    assert transport.peer_certificates(shake_hands(context, client(), "localhost")[0]) == ()


def test_a_certificate_comes_with_those_sent_along(jane: Holder, context: ssl.SSLContext) -> None:
    ours, _ = shake_hands(context, client(jane.chain, jane.key), "localhost")
    assert transport.peer_certificates(ours) == (der(jane.certificate), der(jane.above[0]))


def test_a_single_certificate_is_not_remembered(authority: Holder, context: ssl.SSLContext) -> None:
    joe = authority.issue("joe")
    ours, _ = shake_hands(context, client(joe.certificate, joe.key), "localhost")
    assert transport.peer_certificates(ours) == (der(joe.certificate),)
    assert der(joe.certificate) not in transport._intermediates


def test_the_memory_is_bounded_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_CACHED_CHAINS", 2)
    monkeypatch.setattr(transport, "_intermediates", {})
    for own in (b"a", b"b", b"a", b"c"):
        transport._cache(own, (b"between",))
    assert list(transport._intermediates) == [b"a", b"c"]


def test_the_intermediates_of_a_client_are_limited() -> None:
    certificate = b"x" * 1000
    assert len(transport._bounded([certificate] * 50)) == transport.MAX_CHAIN - 1
    assert transport._bounded([certificate, b"y" * transport.MAX_INTERMEDIATE_BYTES, certificate]) == (certificate,)


def test_connections_of_one_client_share_their_intermediates(jane: Holder, context: ssl.SSLContext) -> None:
    first, second = (
        transport.peer_certificates(shake_hands(context, client(jane.chain, jane.key), "localhost")[0])
        for _ in range(2)
    )
    assert first == second
    assert first[1] is second[1]


def test_bytes_are_taken_as_they_are_and_objects_turned_into_bytes() -> None:
    """Newer versions of Python answer bytes."""
    assert transport._der(b"bytes") == b"bytes"
