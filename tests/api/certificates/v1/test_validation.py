"""What may be in a request, and who may change it through which endpoint: the rules and words of kube-apiserver."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.api.certificates.v1 import pkcs10 as pkcs10_module
from clusterregistry.api.certificates.v1 import validation
from clusterregistry.api.certificates.v1.types import USAGES
from clusterregistry.apimachinery import certificates
from tests.api.certificates.signing_requests import condition, in_base64, pem, pkcs10, signing_request

Object = dict[str, Any]

AUTHORITY = certificates.new_authority(certificates.new_key(), now=1_700_000_000)
CERTIFICATE = certificates.certificate_pem(AUTHORITY.certificate)
WHEN = {"lastUpdateTime": "2020-02-03T04:05:06Z", "lastTransitionTime": "2020-02-03T04:05:06Z"}
LEGACY = "kubernetes.io/legacy-unknown"
FORM = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def problems(request: Object) -> list[str]:
    return [str(error) for error in validation.validate(request)]


def with_status(**status: Any) -> Object:
    return signing_request() | {"status": status}


def test_a_request_of_a_client_is_good() -> None:
    assert problems(signing_request(expirationSeconds=600)) == []


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("example.com/a", []),
        ("example.com/a.b-c", []),
        ("", ["Required value"]),
        (
            "a",
            [f'Invalid value: "a": {FORM}'],
        ),
        (
            "a.b/c/d",
            [f'Invalid value: "a.b/c/d": {FORM}'],
        ),
        ("a..b/c", [f'Invalid value: "a..b": validating label "": {LABEL_RULE}']),
        ("A.b/c", [f'Invalid value: "A.b": validating label "A": {LABEL_RULE}']),
        ("b/c", ['Invalid value: "b": should be a domain with at least two segments separated by dots']),
        ("a.b/", [f'Invalid value: "": validating label "": {SUBDOMAIN_RULE}']),
        ("a.b/c.D.E", [f'Invalid value: "c.D.E": validating label "D": {SUBDOMAIN_RULE}']),
        (f"{'a.' * 130}b/c", ["Too long: may not be more than 253 bytes"]),
        (f"a.b/{'c' * 253}.{'d' * 253}.{'e' * 253}", ["Too long: may not be more than 571 bytes"]),
        (
            LEGACY,
            [f'Invalid value: "{LEGACY}": the legacy signerName is not allowed via this API version'],
        ),
    ],
)
def test_names_of_signers(name: str, messages: list[str]) -> None:
    assert problems(signing_request(signerName=name)) == [f"spec.signerName: {each}" for each in messages]


def test_usages() -> None:
    known = ", ".join(f'"{each}"' for each in USAGES)
    assert problems(signing_request(usages=None)) == ["spec.usages: Required value"]
    assert problems(signing_request(usages=list(USAGES))) == []
    assert problems(signing_request(usages=["a", "any", "any"])) == [
        f'spec.usages[0]: Unsupported value: "a": supported values: {known}',
        'spec.usages[2]: Duplicate value: "any"',
    ]


@pytest.mark.parametrize("seconds", [599, 0, -1])
def test_the_least_validity(seconds: int) -> None:
    detail = "may not specify a duration less than 600 seconds (10 minutes)"
    assert problems(signing_request(expirationSeconds=seconds)) == [
        f"spec.expirationSeconds: Invalid value: {seconds}: {detail}"
    ]


def test_a_text_that_is_no_request() -> None:
    text = in_base64(b"junk")
    detail = "PEM block type must be CERTIFICATE REQUEST"
    assert problems(signing_request(request=text)) == [f'spec.request: Invalid value: "{text}": {detail}']
    missing = signing_request()
    missing["spec"]["request"] = None
    assert problems(missing) == [f"spec.request: Invalid value: null: {detail}"]


def test_large_texts_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pkcs10_module, "parse_request", None)
    large = signing_request(data=b"x" * (pkcs10_module.MAX_BYTES + 1))
    assert problems(large) == [f"spec.request: Too long: may not be more than {pkcs10_module.MAX_BYTES} bytes"]
    monkeypatch.setattr(validation, "_request_errors", lambda _text: iter(()))
    text = in_base64(b"x" * (validation.MAX_CERTIFICATE_BYTES + 1))
    limit = validation.MAX_CERTIFICATE_BYTES
    assert problems(with_status(certificate=text)) == [
        f"status.certificate: Too long: may not be more than {limit} bytes"
    ]


def test_very_many_mistakes_are_cut() -> None:
    assert len(problems(signing_request(usages=["a"] * 100_000))) == 1000


@pytest.mark.parametrize(
    ("conditions", "messages"),
    [
        ([condition("Approved")], []),
        ([condition("Approved"), condition("Failed"), condition("Own", "Unknown")], []),
        ([condition("")], ["status.conditions[0].type: Required value"]),
        ([condition("Approved", "")], ["status.conditions[0].status: Required value"]),
        (
            [condition("Denied", "False")],
            ['status.conditions[0].status: Unsupported value: "False": supported values: "True"'],
        ),
        (
            [condition("Own", "Odd")],
            ['status.conditions[0].status: Unsupported value: "Odd": supported values: "False", "True", "Unknown"'],
        ),
        (
            [condition("Denied"), condition("Approved")],
            ['status.conditions: Invalid value: "Approved": Approved and Denied conditions are mutually exclusive'],
        ),
        ([condition("Own"), condition("Own")], ['status.conditions[1].type: Duplicate value: "Own"']),
    ],
)
def test_conditions(conditions: list[Object], messages: list[str]) -> None:
    assert problems(with_status(conditions=conditions)) == messages


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (CERTIFICATE, ""),
        (b"text\n" + CERTIFICATE * 2 + b"text", ""),
        (b"junk", "must contain at least one CERTIFICATE PEM block"),
        (pkcs10(), 'only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"'),
        (CERTIFICATE + pem("PRIVATE KEY", b"x"), 'only CERTIFICATE PEM blocks are allowed, found "PRIVATE KEY"'),
        (CERTIFICATE.replace(b"-----\n", b"-----\na: b\n\n", 1), "no PEM block headers are permitted"),
        (pem("CERTIFICATE", b"junk"), "x509: malformed certificate"),
    ],
)
def test_certificates(data: bytes, message: str) -> None:
    found = problems(with_status(certificate=in_base64(data)))
    assert found == ([f'status.certificate: Invalid value: "<certificate data>": {message}'] if message else [])


APPROVED = condition("Approved", reason="Because", **WHEN)
DENIED = condition("Denied", **WHEN)
FAILED = condition("Failed", **WHEN)
ISSUED = in_base64(CERTIFICATE)
OTHER = in_base64(CERTIFICATE * 2)


@pytest.mark.parametrize(
    ("before", "after", "update", "status", "approval"),
    [
        ({}, {"conditions": [APPROVED]}, "add Approved", "add Approved", ""),
        ({}, {"conditions": [DENIED]}, "add Denied", "add Denied", ""),
        ({}, {"conditions": [FAILED]}, "", "", ""),
        ({"conditions": [APPROVED]}, {}, "remove Approved", "remove Approved", "remove Approved"),
        ({"conditions": [FAILED]}, {}, "remove Failed", "remove Failed", "remove Failed"),
        ({}, {"certificate": ISSUED}, "set", "", "set"),
        ({"certificate": ISSUED}, {"certificate": OTHER}, "set", "modify", "set"),
        ({"certificate": ISSUED}, {}, "set", "modify", "set"),
        ({"certificate": ISSUED}, {"certificate": ISSUED}, "", "", ""),
    ],
)
def test_what_an_update_may_change(before: Object, after: Object, update: str, status: str, approval: str) -> None:
    old, new = with_status(**before), with_status(**after)
    words = {
        "set": "status.certificate: Forbidden: updates may not set certificate content",
        "modify": "status.certificate: Forbidden: updates may not modify existing certificate content",
    }
    for function, expected in (
        (validation.validate_update, update),
        (validation.validate_status_update, status),
        (validation.validate_approval_update, approval),
    ):
        verb, _, kind = expected.partition(" ")
        message = f'status.conditions: Forbidden: updates may not {verb} a condition of type "{kind}"'
        wanted = [words.get(expected, message)] if expected else []
        assert [str(each) for each in function(new, old)] == wanted


def test_a_decision_is_changed_through_approval_alone() -> None:
    old = with_status(conditions=[APPROVED])
    new = with_status(conditions=[APPROVED | {"reason": "Another"}])
    assert validation.validate_approval_update(new, old) == []
    (found,) = validation.validate_status_update(new, old)
    assert found.message.startswith('Forbidden: updates may not modify a condition of type "Approved"\n')


def test_what_was_wrong_before_may_stay() -> None:
    old = signing_request(signerName=LEGACY, usages=["a", "a"])
    old["status"] = {
        "conditions": [condition("Approved"), condition("Denied"), condition("", "True"), condition("", "True")],
        "certificate": in_base64(b"junk"),
    }
    assert validation.validate_update(copy.deepcopy(old), old) == []
