from __future__ import annotations

import hashlib

import pytest
from cryptography.x509.oid import ObjectIdentifier

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn import certificates
from clusterregistry.apiserver.authn.certificates import Authorities
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authn.x509 import ClientCertificates
from clusterregistry.apiserver.http.transport import MAX_CHAIN
from tests.apiserver.authn.certificates import ANY, CN, END, SERVER, START, UID, O, client_root, clients, der, root
from tests.apiserver.authn.requests import FakeRequest


def authenticate(*chain: bytes, at: float = START + 1) -> User | None:
    return ClientCertificates(clients(), lambda: at).authenticate(FakeRequest(client_certificates=chain))


def test_common_name_is_the_user_and_organizations_are_groups() -> None:
    certificate = der((O, "devs"), (O, "ops"), (CN, "jane"))
    user = authenticate(certificate)
    assert user is not None
    assert (user.name, user.uid) == ("jane", "")
    assert user.groups == ("devs", "ops", "system:authenticated")
    fingerprint = hashlib.sha256(certificate).hexdigest()
    assert user.extra == {"authentication.kubernetes.io/credential-id": (f"X509SHA256={fingerprint}",)}


def test_a_uid_in_the_subject_is_the_users() -> None:
    user = authenticate(der((CN, "jane"), (UID, "u-1")))
    assert user is not None
    assert user.uid == "u-1"


def test_of_several_common_names_the_last_counts() -> None:
    user = authenticate(der((CN, "first"), (CN, "last")))
    assert user is not None
    assert user.name == "last"


def test_no_certificate_is_left_to_others() -> None:
    assert authenticate() is None


def test_a_certificate_without_a_common_name_is_left_to_others() -> None:
    assert authenticate(der((O, "system:masters"))) is None


@pytest.mark.parametrize("usages", [None, (ANY,)])
def test_a_certificate_for_any_use_is_good(usages: tuple[ObjectIdentifier, ...] | None) -> None:
    assert authenticate(der((CN, "jane"), usages=usages)) is not None


@pytest.mark.parametrize(
    "certificate",
    [
        b"",
        b"not a certificate",
        der((CN, "jane"))[:-20],
        der((CN, "jane"), usages=(SERVER,)),
        der((CN, "jane"), (UID, "a"), (UID, "b")),
    ],
    ids=["empty", "garbage", "cut", "for servers", "two uids"],
)
def test_a_certificate_that_is_not_good_is_refused(certificate: bytes) -> None:
    with pytest.raises(APIError) as raised:
        authenticate(certificate)
    assert raised.value.code == 401


@pytest.mark.parametrize("at", [START - 1, END + 1])
def test_a_certificate_counts_only_in_its_time(at: float) -> None:
    with pytest.raises(APIError) as raised:
        authenticate(der((CN, "jane")), at=at)
    assert raised.value.code == 401


def test_a_certificate_that_ends_while_the_connection_lives_is_refused() -> None:
    now = [START]
    authenticator = ClientCertificates(clients(), lambda: now[0])
    request = FakeRequest(client_certificates=(der((CN, "jane")),))
    assert authenticator.authenticate(request) is not None
    now[0] = END + 1
    with pytest.raises(APIError):
        authenticator.authenticate(request)


def test_a_certificate_that_was_refused_before_its_time_counts_later() -> None:
    now = [START - 1]
    authenticator = ClientCertificates(clients(), lambda: now[0])
    request = FakeRequest(client_certificates=(der((CN, "jane")),))
    with pytest.raises(APIError):
        authenticator.authenticate(request)
    now[0] = START + certificates.REFUSED_SECONDS
    assert authenticator.authenticate(request) is not None


def test_a_chain_is_verified_once_and_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[certificates.Chain] = []
    real = certificates.Recognition._examine

    def counted(self: certificates.Recognition[User], chain: certificates.Chain, now: float) -> object:
        verified.append(chain)
        return real(self, chain, now)

    monkeypatch.setattr(certificates.Recognition, "_examine", counted)
    monkeypatch.setattr(certificates, "MAX_REMEMBERED", 2)
    authenticator = ClientCertificates(clients(), lambda: START)
    request = FakeRequest(client_certificates=(der((CN, "jane")),))
    for _ in range(3):
        authenticator.authenticate(request)
    assert len(verified) == 1
    for number in range(5):
        authenticator.authenticate(FakeRequest(client_certificates=(der((CN, f"user-{number}")),)))
    assert len(authenticator._recognition._seen) <= 2


def test_useless_certificates_that_come_along_are_not_kept() -> None:
    authenticator = ClientCertificates(clients(), lambda: START)
    good, bad = der((CN, "jane")), root("stranger").issue("joe").der
    for number in range(5):
        useless = (b"%d" % number * 97_000,) * MAX_CHAIN
        with pytest.raises(APIError):
            authenticator.authenticate(FakeRequest(client_certificates=(bad, *useless)))
    assert all(len(key) == 32 for key in authenticator._recognition._seen)
    kept = len(authenticator._recognition._seen)
    for number in range(5):
        authenticator.authenticate(FakeRequest(client_certificates=(good, root(f"useless-{number}").der)))
    assert len(authenticator._recognition._seen) == kept + 1


def test_a_client_without_its_intermediate_does_not_spoil_it_for_one_that_sends_it() -> None:
    between = client_root().authority("between")
    jane = between.issue("jane").der
    authenticator = ClientCertificates(clients(), lambda: START)
    with pytest.raises(APIError):
        authenticator.authenticate(FakeRequest(client_certificates=(jane,)))
    user = authenticator.authenticate(FakeRequest(client_certificates=(jane, between.der)))
    assert user is not None
    assert user.name == "jane"


def test_authorities_that_are_exchanged_count_at_once() -> None:
    old, new = root("old"), root("new")
    authorities = Authorities(old.pem)
    authenticator = ClientCertificates(authorities, lambda: START)
    of_old = FakeRequest(client_certificates=(old.issue("jane").der,))
    of_new = FakeRequest(client_certificates=(new.issue("joe").der,))
    assert authenticator.authenticate(of_old) is not None
    with pytest.raises(APIError):
        authenticator.authenticate(of_new)
    authorities.replace(new.pem)
    assert authenticator.authenticate(of_new) is not None
    with pytest.raises(APIError):
        authenticator.authenticate(of_old)


def test_an_authority_that_cannot_be_read_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    good = client_root()
    authenticator = ClientCertificates(Authorities(f"remarks\n{broken}more\n{good.pem}"), lambda: START)
    assert authenticator.authenticate(FakeRequest(client_certificates=(good.issue("jane").der,))) is not None
    assert "left out" in caplog.text


def test_certificates_are_told_apart_whatever_stands_between_them() -> None:
    one, two = root("one"), root("two")
    broken = "-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n"
    assert certificates.certificates_in(f"one:\n{one.pem}{broken}") == {one.der}
    assert certificates.certificates_in(two.pem + one.pem.replace("\n", "\r\n")) == {one.der, two.der}
    assert certificates.certificates_in("") == set()


def test_no_authorities_recognise_nobody() -> None:
    with pytest.raises(APIError):
        ClientCertificates(Authorities(), lambda: START).authenticate(
            FakeRequest(client_certificates=(client_root().der,))
        )
