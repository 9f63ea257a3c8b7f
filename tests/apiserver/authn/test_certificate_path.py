"""Which authority stands behind a certificate, and when none does."""

from __future__ import annotations

import dataclasses
import datetime as dt
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.verification import Criticality, ExtensionPolicy, PolicyBuilder, Store, VerificationError

from clusterregistry.apiserver.authn import certificate_path
from clusterregistry.apiserver.authn.certificate_path import RefusedError, Search, period
from tests.apiserver.authn.certificates import ANY, CA, CLIENT, CN, END, SERVER, START, Party, root, use
from tests.apiserver.server.authorities import openssl

NOW = START + 1


def path(leaf: Party, *others: Party, anchors: Sequence[Party], now: float = NOW) -> list[str]:
    """The common names from the leaf to the authority."""
    search = Search([each.certificate for each in anchors], [each.certificate for each in others], now=now)
    return [each.subject.rfc4514_string().removeprefix("CN=") for each in search.path(leaf.certificate)]


def refusal(leaf: Party, *others: Party, anchors: Sequence[Party], now: float = NOW) -> str:
    with pytest.raises(RefusedError) as raised:
        path(leaf, *others, anchors=anchors, now=now)
    return str(raised.value)


ROOT, OTHER = root(), root("other")
MIDDLE = ROOT.authority("middle")
LOWER = MIDDLE.authority("lower")
NOBODY = "no authority that counts here"


def test_the_authority_itself_or_those_between_lead_to_it() -> None:
    assert path(ROOT.issue("jane"), anchors=[OTHER, ROOT]) == ["jane", "root"]
    jane = LOWER.issue("jane")
    assert path(jane, MIDDLE, LOWER, anchors=[ROOT]) == ["jane", "lower", "middle", "root"]


def test_an_authority_need_not_be_a_root() -> None:
    assert path(LOWER.issue("jane"), LOWER, anchors=[MIDDLE]) == ["jane", "lower", "middle"]


def test_who_is_among_the_authorities_needs_nobody_else() -> None:
    jane = ROOT.issue("jane")
    assert path(jane, anchors=[jane]) == ["jane"]


@pytest.mark.parametrize(
    "others", [[], [MIDDLE], [OTHER], [ROOT.authority("lower")]], ids=["none", "one missing", "foreign", "same name"]
)
def test_without_all_between_there_is_no_way(others: list[Party]) -> None:
    assert NOBODY in refusal(LOWER.issue("jane"), *others, anchors=[ROOT])


def test_an_authority_of_the_same_name_is_another() -> None:
    assert NOBODY in refusal(root().issue("jane"), anchors=[ROOT])
    assert NOBODY in refusal(ROOT.issue("jane"), anchors=[OTHER])


def test_of_authorities_of_one_name_the_right_one_is_found() -> None:
    assert path(ROOT.issue("jane"), anchors=[root(), ROOT, root()]) == ["jane", "root"]


def test_a_user_cannot_sign_for_another() -> None:
    jane = ROOT.issue("jane")
    assert NOBODY in refusal(jane.issue("admin"), jane, anchors=[ROOT])
    assert NOBODY in refusal(jane.issue("admin"), anchors=[jane, ROOT])


def test_a_path_is_no_longer_than_its_authorities_allow() -> None:
    short = root("short", extensions=(x509.BasicConstraints(ca=True, path_length=0),))
    below = short.authority("below")
    assert path(short.issue("jane"), anchors=[short]) == ["jane", "short"]
    assert NOBODY in refusal(below.issue("jane"), below, anchors=[short])
    one = ROOT.authority("one", extensions=(x509.BasicConstraints(ca=True, path_length=1),))
    two = one.authority("two")
    three = two.authority("three")
    assert path(two.issue("jane"), one, two, anchors=[ROOT]) == ["jane", "two", "one", "root"]
    assert NOBODY in refusal(three.issue("jane"), one, two, three, anchors=[ROOT])


def key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


@pytest.mark.parametrize(
    ("extensions", "good"),
    [
        ((CA, key_usage(signs=True)), True),
        ((CA, key_usage(signs=False)), False),
        ((CA, use(CLIENT)), True),
        ((CA, use(SERVER)), False),
        ((x509.BasicConstraints(ca=False, path_length=None),), False),
        ((key_usage(signs=True),), False),
    ],
    ids=["signs", "does not sign", "for clients", "for servers", "no authority", "does not say"],
)
@pytest.mark.parametrize("trusted", [True, False])
def test_only_authorities_for_clients_sign(
    *, extensions: tuple[x509.ExtensionType, ...], good: bool, trusted: bool
) -> None:
    signer = ROOT.issue("signer", extensions=extensions)
    jane = signer.issue("jane")
    anchors, others = ([signer], []) if trusted else ([ROOT], [signer])
    if good:
        assert path(jane, *others, anchors=anchors)[:2] == ["jane", "signer"]
    else:
        assert NOBODY in refusal(jane, *others, anchors=anchors)


def test_a_certificate_must_be_meant_for_clients() -> None:
    assert "extended key usage" in refusal(ROOT.issue("jane", extensions=(use(SERVER),)), anchors=[ROOT])
    assert path(ROOT.issue("jane", extensions=(use(SERVER, ANY),)), anchors=[ROOT]) == ["jane", "root"]


def test_all_of_a_path_must_be_valid_now() -> None:
    ends_soon = ROOT.authority("ends", end=START + 60)
    jane = ends_soon.issue("jane")
    assert path(jane, ends_soon, anchors=[ROOT]) == ["jane", "ends", "root"]
    assert NOBODY in refusal(jane, ends_soon, anchors=[ROOT], now=START + 61)
    later = ROOT.authority("later", start=START + 60)
    assert NOBODY in refusal(later.issue("jane"), later, anchors=[ROOT])
    assert "it ended at 2027-01-15T09:00:00Z" in refusal(ROOT.issue("jane"), anchors=[ROOT], now=END + 1)
    assert "it begins at 2027-01-15T08:00:00Z" in refusal(ROOT.issue("jane"), anchors=[ROOT], now=START - 1)


def test_an_authority_that_has_ended_does_not_hide_its_successor() -> None:
    ended = root(end=START, key=ROOT.key)
    assert path(ROOT.issue("jane"), anchors=[ended, ROOT]) == ["jane", "root"]
    assert NOBODY in refusal(ROOT.issue("jane"), anchors=[ended])


def test_the_period_is_that_in_which_all_are_valid() -> None:
    middle = ROOT.authority("middle", start=START + 5)
    jane = middle.issue("jane", end=START + 50)
    assert period([jane.certificate, middle.certificate, ROOT.certificate]) == (START + 5, START + 50)


def test_a_detour_does_not_hide_the_way() -> None:
    crossed = OTHER.authority("middle", key=MIDDLE.key)  # the same authority, also signed by somebody unknown here
    jane = MIDDLE.issue("jane")
    assert path(jane, crossed, MIDDLE, anchors=[ROOT]) == ["jane", "middle", "root"]


def test_a_circle_ends() -> None:
    one = root("one")
    two = one.authority("two")
    back = two.authority("one", key=one.key)
    assert NOBODY in refusal(two.issue("jane"), two, back, anchors=[ROOT])


def test_certificates_made_to_keep_us_busy_are_refused() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    maze = root("maze", key=key)
    copies = [maze.authority("maze", key=key) for _ in range(9)]
    assert "in reasonable time" in refusal(maze.issue("jane"), *copies, anchors=[ROOT])
    assert certificate_path.MAX_SIGNATURES < 100


def test_keys_of_another_kind_do_not_fit() -> None:
    """A signature by one kind of key cannot be checked with another: no way, and no error."""
    key = rsa.generate_private_key(65537, 2048)
    start, end = (dt.datetime.fromtimestamp(at, dt.UTC) for at in (START, END))
    name = ROOT.certificate.subject
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, start, end).add_extension(CA, critical=True)
    stranger = dataclasses.replace(ROOT, certificate=builder.sign(key, hashes.SHA256()))
    assert NOBODY in refusal(ROOT.issue("jane"), anchors=[stranger])


def test_an_authority_may_have_an_ed25519_key() -> None:
    authority, jane = ed25519_authority()
    assert path(jane, anchors=[authority]) == ["jane", "ed25519"]
    assert NOBODY in refusal(jane, anchors=[ROOT])


def test_cryptographys_verifier_still_refuses_what_decision_17_says(tmp_path: Path) -> None:
    """Once this fails, see whether the library can take the place of our search."""
    now = time.time()
    old = version_1(tmp_path, "old", by=None)
    by_old = old.issue("jane", start=now - 60, end=now + 60)
    authority, by_ed25519 = ed25519_authority()
    for anchor, leaf, at, why in (
        (authority, by_ed25519, NOW, "Forbidden public key algorithm"),
        (old, by_old, now + 5, "X509v3"),
    ):
        policy = ExtensionPolicy.permit_all()
        ca_policy = policy.require_present(x509.BasicConstraints, Criticality.AGNOSTIC, None)
        builder = PolicyBuilder().store(Store([anchor.certificate])).time(dt.datetime.fromtimestamp(at, dt.UTC))
        verifier = builder.extension_policies(ee_policy=policy, ca_policy=ca_policy).build_client_verifier()
        with pytest.raises(VerificationError, match=why):
            verifier.verify(leaf.certificate, [])


def ed25519_authority() -> tuple[Party, Party]:
    """An authority with an Ed25519 key, and a client of it."""
    key = ed25519.Ed25519PrivateKey.generate()
    start, end = (dt.datetime.fromtimestamp(at, dt.UTC) for at in (START, END))
    name = x509.Name([x509.NameAttribute(CN, "ed25519")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, start, end).add_extension(CA, critical=True)
    authority = dataclasses.replace(ROOT, certificate=builder.sign(key, None))
    client = ec.generate_private_key(ec.SECP256R1())
    jane = x509.Name([x509.NameAttribute(CN, "jane")])
    certificate = x509.CertificateBuilder(name, jane, client.public_key(), 2, start, end).sign(key, None)
    return authority, Party(certificate, client)


def test_an_old_root_is_trusted_and_an_old_certificate_between_is_not(tmp_path: Path) -> None:
    """Certificates of version 1 cannot say that they are authorities."""
    now = time.time()
    old = version_1(tmp_path, "old", by=None)
    jane = old.issue("jane", start=now - 60, end=now + 60)
    assert path(jane, anchors=[old], now=now + 5) == ["jane", "old"]
    top = root("top", start=now - 60, end=now + 60)
    between = version_1(tmp_path, "between", by=top)
    lower = between.issue("jane", start=now - 60, end=now + 60)
    assert NOBODY in refusal(lower, between, anchors=[top], now=now + 5)


def version_1(directory: Path, name: str, *, by: Party | None) -> Party:
    """What ``openssl x509 -req`` makes when it is given no extensions."""
    key, request, made = (directory / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
            "-subj", f"/CN={name}", "-out", request)  # fmt: skip
    if by is None:
        signing: list[object] = ["-signkey", key]
    else:
        authority = directory / "authority.pem"
        authority.write_text(by.pem + key_pem(by))
        signing = ["-CA", authority, "-CAkey", authority, "-set_serial", "7"]
    openssl("x509", "-req", "-in", request, *signing, "-out", made)
    certificate = x509.load_pem_x509_certificate(made.read_bytes())
    if certificate.version is not x509.Version.v1:
        pytest.skip("this openssl makes no certificates of version 1")
    private = load_pem_private_key(key.read_bytes(), None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    return Party(certificate, private)


def key_pem(party: Party) -> str:
    return party.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
