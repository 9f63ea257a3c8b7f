from __future__ import annotations

import hashlib

import pytest
from cryptography.x509.oid import ObjectIdentifier

from clusterregistry.apis.meta.errors import APIError
from clusterregistry.authn import x509
from clusterregistry.authn.users import User
from clusterregistry.authn.x509 import ClientCertificates
from tests.authn.certificates import ANY, CN, END, SERVER, START, UID, O, der
from tests.authn.requests import FakeRequest


def authenticate(certificate: bytes | None, *, at: float = START + 1) -> User | None:
    return ClientCertificates(lambda: at).authenticate(FakeRequest(client_certificate=certificate))


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
    assert authenticate(None) is None


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
    certificates = ClientCertificates(lambda: now[0])
    request = FakeRequest(client_certificate=der((CN, "jane")))
    assert certificates.authenticate(request) is not None
    now[0] = END + 1
    with pytest.raises(APIError):
        certificates.authenticate(request)


def test_a_certificate_is_parsed_once_and_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    real = x509.recognise

    def counted(content: bytes) -> x509.Recognised:
        parsed.append(content)
        return real(content)

    monkeypatch.setattr(x509, "recognise", counted)
    monkeypatch.setattr(x509, "MAX_REMEMBERED", 2)
    certificates = ClientCertificates(lambda: START)
    request = FakeRequest(client_certificate=der((CN, "jane")))
    for _ in range(3):
        certificates.authenticate(request)
    assert len(parsed) == 1
    for number in range(5):
        certificates.authenticate(FakeRequest(client_certificate=der((CN, f"user-{number}"))))
    assert len(certificates._seen) <= 2
