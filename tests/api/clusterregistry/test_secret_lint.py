from __future__ import annotations

import base64
import time
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.api.clusterregistry import secret_lint
from clusterregistry.api.clusterregistry.credential_patterns import find_credential
from clusterregistry.api.clusterregistry.secret_lint import inspect
from clusterregistry.api.clusterregistry.v1alpha1.validation import ca_bundle_error
from clusterregistry.apimachinery.credentials import is_private_key
from tests.apimachinery import json_values
from tests.apiserver.authn.certificates import root

PEM = "-----BEGIN {}PRIVATE KEY-----\nMIIabc\n-----END {}PRIVATE KEY-----\n"
KEY = PEM.format("", "")
HEADER = base64.urlsafe_b64encode(b'{"alg":"RS256","typ":"JWT"}').decode().rstrip("=")
JWT = f"{HEADER}.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


def config(**values: str) -> list[str]:
    spec = {"authInfo": {"providers": [{"name": "p", "config": values}]}}
    return [finding.path for finding in inspect(spec=spec, annotations=None)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        *((PEM.format(kind, kind), "a private key") for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ")),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----", "a private key"),
        (base64.b64encode(PEM.format("RSA ", "RSA ").encode()).decode(), "an encoded private key"),
        (JWT, "a JSON web token"),
        (f"Bearer {JWT}", "a JSON web token"),
        ("AKIAIOSFODNN7EXAMPLE", "an AWS access key"),
        ('{"type": "service_account", "project_id": "x"}', "a Google Cloud credential"),
        ("ghp_" + "a1" * 18, "a GitHub token"),
        ("github_pat_" + "a1_" * 10, "a GitHub token"),
        ("glpat-" + "a1-_" * 5, "a GitLab token"),
        ("xoxb-123456789012-abcdef", "a Slack token"),
        ("https://user:hunter2@example.com/", "a URL with a password"),
    ],
)
def test_credentials_are_known_by_their_looks(text: str, what: str) -> None:
    assert find_credential(text) == what
    assert find_credential(f"prefix: {text}") == what


@pytest.mark.parametrize(
    "text",
    [
        "",
        "eyJ",
        "eyJhbGciOi.not.atoken",
        "eyJub3QiOiJhIHRva2VuIn0.abc.def",
        "a.b.c",
        "-----BEGIN CERTIFICATE-----\nMIIabc\n-----END CERTIFICATE-----",
        base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIabc\n").decode(),
        "-----BEGIN PUBLIC KEY-----",
        "https://example.com:8443/oauth/token?x=a@b",
        "https://user@example.com/",
        "arn:aws:iam::123456789012:role/AKIA",
        "mailto:someone@example.com",
    ],
)
def test_what_only_resembles_one_gives_no_alarm(text: str) -> None:
    assert find_credential(text) == ""


@pytest.mark.parametrize(
    "key",
    [
        *(
            "token",
            "Token",
            "id-token",
            "idToken",
            "ID_TOKEN",
            "refresh-token",
            "access-token",
            "bearer.token",
            "password",
        ),
        *(
            "client-key-data",
            "client-secret",
            "clientSecret",
            "secret",
            "aws_secret_access_key",
            "apiKey",
            "private-key",
        ),
        *(
            "pwd",
            "dbPwd",
            "pass",
            "db-pass",
            "DB_PASS",
            "userpass",
            "accessKey",
            "access-key",
            "bearer",
            "authorization",
        ),
    ],
)
def test_a_value_under_a_credentials_name_is_one(key: str) -> None:
    assert config(**{key: "s3cr3t"}) == [f"spec.authInfo.providers[0].config.{key}"]
    assert config(**{key: ""}) == []


@pytest.mark.parametrize(
    "key",
    [
        *(
            "tokenFile",
            "secretName",
            "tokenSecretRef",
            "token-url",
            "token_endpoint",
            "passwordFile",
            "client-id",
            "expiry",
        ),
        *(
            "client-key",
            "certificate-authority-data",
            "idp-issuer-url",
            "token-key",
            "cmd-path",
            "secretNamespace",
            "user",
        ),
        *("bypass", "compass", "passport", "passFile", "accessKeyID", "authorizationMode", "bearerFile"),
    ],
)
def test_pointers_give_no_alarm(key: str) -> None:
    assert config(**{key: "anything"}) == []


@pytest.mark.parametrize(
    "value",
    [
        *(
            "vault:secret/data/clusters/a",
            "https://vault.example.com/v1/x",
            "/var/run/secrets/token",
            "~/.token",
            "${TOKEN}",
        ),
        *("arn:aws:secretsmanager:eu-west-1:1:secret:a", "projects/p/secrets/s", "env:TOKEN", "<from vault>", "true"),
    ],
)
def test_a_value_that_points_elsewhere_gives_no_alarm(value: str) -> None:
    assert config(token=value) == []


FORMS = ("RSA", "RSA, PKCS #8", "EC", "EC, PKCS #8", "DSA", "DSA, PKCS #8", "Ed25519", "encrypted", "a store of keys")


@cache
def in_der(form: str) -> bytes:
    """A private key in one of the forms."""
    plain, sealed = NoEncryption(), BestAvailableEncryption(b"passphrase")
    key = _generated(form.partition(",")[0])
    if form == "a store of keys":
        return serialize_key_and_certificates(b"name", key, None, None, sealed)
    old = form in {"RSA", "EC", "DSA"}
    written_as = PrivateFormat.TraditionalOpenSSL if old else PrivateFormat.PKCS8
    return bytes(key.private_bytes(Encoding.DER, written_as, sealed if form == "encrypted" else plain))


@cache
def _generated(kind: str) -> Any:
    match kind:
        case "RSA":
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)
        case "DSA":
            return dsa.generate_private_key(1024)
        case "Ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            return ec.generate_private_key(ec.SECP384R1())


@pytest.mark.parametrize("form", FORMS)
def test_a_private_key_in_der_is_known_in_base64(form: str) -> None:
    once = base64.b64encode(in_der(form)).decode()
    assert find_credential(once) == "a private key, encoded"
    assert find_credential(base64.encodebytes(in_der(form)).decode()) == "a private key, encoded"
    assert find_credential(base64.b64encode(once.encode()).decode()) == "a private key, encoded"
    assert config(**{"client-key": once}) == ["spec.authInfo.providers[0].config.client-key"]


@pytest.mark.parametrize("form", FORMS)
def test_a_private_key_in_der_is_known_in_other_letters(form: str) -> None:
    der = in_der(form)
    url_safe = base64.urlsafe_b64encode(der).decode()
    for text in (url_safe, url_safe.rstrip("="), der.hex(), der.hex().upper(), der.hex(":"), der.hex(" ")):
        assert find_credential(text) == "a private key, encoded"
        assert config(**{"client-key": text}) == ["spec.authInfo.providers[0].config.client-key"]


def test_what_only_begins_like_hexadecimal_is_left_alone() -> None:
    for text in ("30" + "\N{NO-BREAK SPACE}00" * 60, "30" * 60, "M" + "_-" * 60, "30:" * 60):
        assert find_credential(text) == ""


@pytest.mark.parametrize("form", FORMS)
def test_a_private_key_in_der_is_no_authority_in_any_mode(form: str) -> None:
    assert "holds a private key" in ca_bundle_error(base64.b64encode(in_der(form)).decode())
    twice = base64.b64encode(base64.b64encode(in_der(form))).decode()
    found = inspect(spec={"kubernetesApiEndpoints": {"caBundle": twice}})
    assert [finding.path for finding in found] == ["spec.kubernetesApiEndpoints.caBundle"]


def test_what_is_public_in_der_gives_no_alarm() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    ec_key = ec.generate_private_key(ec.SECP256R1())
    public = [
        key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        key.public_key().public_bytes(Encoding.DER, PublicFormat.PKCS1),
        ec_key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        ec_key.sign(b"text", ec.ECDSA(SHA256())),
        root().der,
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([]))
        .sign(key, SHA256())
        .public_bytes(Encoding.DER),
    ]
    for content in public:
        assert find_credential(base64.b64encode(content).decode()) == ""
        assert find_credential(base64.urlsafe_b64encode(content).decode()) == ""
        assert find_credential(content.hex()) == ""
        assert ca_bundle_error(base64.b64encode(content).decode()) == ""


@given(st.binary(max_size=100))
def test_any_bytes_can_be_looked_at(content: bytes) -> None:
    assert is_private_key(content) in {True, False}
    assert not is_private_key(b"0" + content[:10])


def test_a_key_of_a_providers_configuration_can_be_a_credential_and_is_never_shown() -> None:
    spec = {"authInfo": {"providers": [{"name": "p", "config": {"a": "b", JWT: "x", f"{JWT}.token": JWT}}]}}
    found = inspect(spec=spec)
    assert found[0] == ("spec.authInfo.providers[0].config", "a JSON web token as a key")
    assert found[1].path == "spec.authInfo.providers[0].config.[masked]"
    assert JWT not in str(secret_lint.warnings(found) + secret_lint.errors(found))


def test_a_key_that_is_a_credential_is_not_shown_for_its_name_either() -> None:
    found = inspect(spec={"authInfo": {"providers": [{"config": {f"{JWT}/password": "hunter22"}}]}})
    assert JWT not in str(found)


def test_a_credentials_name_means_nothing_outside_of_a_providers_config() -> None:
    assert inspect(spec={"cloudProvider": {"name": "token"}, "token": "x"}, annotations={"token": "x"}) == []


def test_credentials_are_found_anywhere_in_spec_and_annotations() -> None:
    spec = {"cloudProvider": {"name": JWT}, "kubernetesApiEndpoints": {"serverEndpoints": [{"serverAddress": JWT}]}}
    findings = inspect(spec=spec, annotations={"example.com/x": KEY})
    assert [finding.path for finding in findings] == [
        "spec.cloudProvider.name",
        "spec.kubernetesApiEndpoints.serverEndpoints[0].serverAddress",
        "metadata.annotations[example.com/x]",
    ]


def test_the_last_applied_configuration_does_not_alarm_twice() -> None:
    annotations = {secret_lint.LAST_APPLIED: f'{{"spec":{{"cloudProvider":{{"name":"{JWT}"}}}}}}'}
    assert len(inspect(spec={"cloudProvider": {"name": JWT}}, annotations=annotations)) == 1


def test_a_ca_bundle_is_for_validation_to_judge() -> None:
    encoded = base64.b64encode(KEY.encode()).decode()
    assert find_credential(encoded)
    assert inspect(spec={"kubernetesApiEndpoints": {"caBundle": encoded}}, annotations=None) == []


def test_no_text_for_people_shows_the_value() -> None:
    spec = {"authInfo": {"providers": [{"config": {"token": "hunter2", "note": JWT}}]}}
    findings = inspect(spec=spec, annotations=None)
    texts = secret_lint.warnings(findings) + [str(error) for error in secret_lint.errors(findings)]
    assert len(texts) == 4
    assert all("hunter2" not in text and HEADER not in text for text in texts)
    assert all(text.startswith("spec.authInfo.providers[0].config.") for text in texts)


def test_the_number_of_warnings_is_bounded() -> None:
    spec = {"authInfo": {"providers": [{"config": {"token": "x"}}] * 50}}
    shown = secret_lint.warnings(inspect(spec=spec, annotations=None))
    assert len(shown) == 11
    assert shown[-1] == "40 more values look like credentials"


@pytest.mark.parametrize(
    "unit",
    [
        *("eyJ", "eyJa.", "LS0tLS1CRUdJTi", "-----BEGIN ", "a.", "a://", '"type" ', "a:b@", "ya29.", "8Q~", "abc8Q~a"),
        *(
            "$6$",
            "$6$a$a",
            "$2y$05$",
            '"auth": "',
            "authorization: basic ",
            "?sig=",
            "AccountKey=",
            "SecretAccessKey: ",
        ),
        *(
            "kind: Config token: ",
            "kind:",
            " token:",
            "hooks.slack.com/services/T/B",
            "AGE-SECRET-KEY-1",
            "a" * 50 + " ",
        ),
    ],
)
def test_hostile_text_takes_no_more_than_linear_time(unit: str) -> None:
    started = time.process_time()
    for end in ("", " " * 60_000 + "!"):
        find_credential(unit * (100_000 // len(unit)) + end)
    assert time.process_time() - started < 2


@given(json_values.values, json_values.values)
def test_any_json_is_inspected(spec: Any, annotations: Any) -> None:
    assert isinstance(secret_lint.warnings(inspect(spec=spec, annotations=annotations)), list)


def test_a_very_deep_value_is_inspected() -> None:
    deep: Any = JWT
    for _ in range(3000):
        deep = [deep]
    assert len(inspect(spec=deep, annotations=None)) == 1
