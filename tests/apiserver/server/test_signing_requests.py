"""From a request to a client certificate, over TLS: who makes it, who approves it, and who the certificate is for."""

from __future__ import annotations

import base64
import datetime as dt
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.api.certificates.signing_requests import condition, in_base64, key, pkcs10, signing_request, subject
from tests.apiserver.api.clients import NOBODY, Client
from tests.apiserver.api.over_tls import OverTLS
from tests.apiserver.api.rbac_objects import BINDINGS, ROLES, binding, role, rule
from tests.apiserver.server.programs import Program

Object = dict[str, Any]

GROUP = "certificates.k8s.io"
REQUESTS = f"/apis/{GROUP}/v1/certificatesigningrequests"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
SIGNER = "kubernetes.io/kube-apiserver-client"

_numbers = itertools.count()


@pytest.fixture
def admin(program: Program) -> Iterator[OverTLS]:
    with program.client() as client:
        yield client


def make(client: Client, data: bytes | None = None, *, headers: Any = None, **spec: Any) -> str:
    """Makes a request under a new name, and returns its path."""
    name = f"request-{next(_numbers)}"
    client.post(REQUESTS, signing_request(name, data, **spec), headers=headers).expect(201)
    return f"{REQUESTS}/{name}"


def decision(client: Client, path: str, kind: str = "Approved") -> Object:
    """The request with a decision, as kubectl sends it."""
    request: Object = client.get(path).expect(200)
    return request | {"status": {"conditions": [condition(kind, reason="Test")]}}


def approve(client: Client, path: str) -> None:
    client.put(f"{path}/approval", decision(client, path)).expect(200)


def when_done(client: Client, path: str) -> Object:
    """The status of a request once it is signed, or has failed."""
    name = path.rpartition("/")[2]
    with client.watch(REQUESTS, fieldSelector=f"metadata.name={name}") as watch:
        for event in watch:
            status: Object = event["object"]["status"]
            if "certificate" in status or len(status.get("conditions", ())) > 1:
                return status
    raise AssertionError("the watch ended")


def certificate_of(status: Object) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(status["certificate"]))


@contextmanager
def signed_in(program: Program, directory: Path, status: Object, kind: str) -> Iterator[OverTLS]:
    """A client with the certificate of a signed request."""
    certificate, private = directory / f"{kind}.crt", directory / f"{kind}.key"
    certificate.write_bytes(base64.b64decode(status["certificate"]))
    private.write_bytes(key(kind).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with program.client(certificate, private) as client:
        yield client


@pytest.fixture
def grant(admin: OverTLS) -> Iterator[Any]:
    """Gives the user nobody rules, for one test."""

    def give(*rules: Object) -> None:
        admin.post(ROLES, role("test-signing", *rules)).expect(201)
        admin.post(BINDINGS, binding("test-signing", "test-signing", User="nobody")).expect(201)

    yield give
    admin.delete(f"{BINDINGS}/test-signing")
    admin.delete(f"{ROLES}/test-signing")


def on_requests(*verbs: str, subresource: str = "") -> Object:
    resource = f"certificatesigningrequests/{subresource}" if subresource else "certificatesigningrequests"
    return rule(*verbs, resource=resource, group=GROUP)


def on_signer(verb: str, name: str) -> Object:
    return rule(verb, resource="signers", group=GROUP, names=[name])


@pytest.mark.parametrize("kind", ["rsa2048", "secp256r1", "secp384r1", "ed25519"])
def test_a_signed_certificate_is_the_user_that_it_names(
    program: Program, admin: OverTLS, tmp_path: Path, kind: str
) -> None:
    path = make(admin, pkcs10(kind, name=subject("jane", "devs", "ops")))
    approve(admin, path)
    with signed_in(program, tmp_path, when_done(admin, path), kind) as jane:
        review = jane.post(REVIEWS, REVIEW, headers={"Authorization": None}).expect(201)
    user = review["status"]["userInfo"]
    assert (user["username"], user["groups"]) == ("jane", ["devs", "ops", "system:authenticated"])


def test_a_request_names_who_made_it_and_not_who_it_claims(admin: OverTLS, grant: Any) -> None:
    grant(on_requests("create"))
    path = make(admin, headers=NOBODY, username="root", groups=["system:masters"])
    spec = admin.get(path).expect(200)["spec"]
    assert (spec["username"], spec["groups"]) == ("nobody", ["system:authenticated"])


def test_a_denied_request_gets_no_certificate(admin: OverTLS) -> None:
    denied, approved = make(admin), make(admin)
    admin.put(f"{denied}/approval", decision(admin, denied, "Denied")).expect(200)
    approve(admin, approved)
    when_done(admin, approved)  # the later one is done, so the earlier one was passed over
    assert "certificate" not in admin.get(denied).expect(200)["status"]
    refused = admin.put(f"{denied}/approval", decision(admin, denied)).refused(422, "Invalid")
    assert "updates may not remove a condition of type" in refused["message"]


@pytest.mark.parametrize(("seconds", "wanted"), [(600, 600), (3600, 3600), (10 * 365 * 86400, 365 * 86400)])
def test_how_long_a_certificate_is_valid(admin: OverTLS, seconds: int, wanted: int) -> None:
    path = make(admin, expirationSeconds=seconds)
    approve(admin, path)
    found = certificate_of(when_done(admin, path))
    length = found.not_valid_after_utc - found.not_valid_before_utc
    backdated = dt.timedelta(minutes=5 if seconds < 8 * 3600 else 0)
    assert length == dt.timedelta(seconds=wanted) + backdated


def test_usages_that_are_not_for_clients_fail(admin: OverTLS) -> None:
    path = make(admin, usages=["server auth"])
    approve(admin, path)
    status = when_done(admin, path)
    assert "certificate" not in status
    assert status["conditions"][1]["reason"] == "SignerValidationFailure"


def test_no_certificate_for_administrators(admin: OverTLS) -> None:
    request = signing_request("masters", pkcs10(name=subject("jane", "system:masters")))
    refused = admin.post(REQUESTS, request).refused(403, "Forbidden")
    assert refused["message"].endswith(f"use of {SIGNER} signer with system:masters group is not allowed")


@pytest.mark.parametrize(
    ("rights", "is_allowed"),
    [
        ([], False),
        ([on_signer("approve", "kubernetes.io/other")], False),
        ([on_signer("sign", SIGNER)], False),
        ([on_signer("approve", SIGNER)], True),
        ([on_signer("approve", "kubernetes.io/*")], True),
    ],
)
def test_approving_takes_the_right_on_the_signer(
    admin: OverTLS, grant: Any, rights: list[Object], *, is_allowed: bool
) -> None:
    grant(on_requests("update", "patch", subresource="approval"), on_requests("update", subresource="status"), *rights)
    path = make(admin)
    answer = admin.put(f"{path}/approval", decision(admin, path), headers=NOBODY)
    if is_allowed:
        answer.expect(200)
        when_done(admin, path)
    else:
        message = f'user not permitted to approve requests with signerName "{SIGNER}"'
        assert answer.refused(403, "Forbidden")["message"].endswith(message)
        assert admin.get(path).expect(200)["status"] == {}


def test_the_right_to_update_a_request_approves_nothing(admin: OverTLS, grant: Any) -> None:
    grant(on_requests("get", "update", "patch"))
    path = make(admin)
    admin.put(path, decision(admin, path), headers=NOBODY).expect(200)
    assert admin.get(path).expect(200)["status"] == {}
    admin.put(f"{path}/approval", decision(admin, path), headers=NOBODY).refused(403, "Forbidden")


def test_signing_takes_the_right_on_the_signer(admin: OverTLS, grant: Any) -> None:
    grant(on_requests("update", "patch", subresource="status"), on_signer("sign", "example.com/own"))
    own, other = make(admin, signerName="example.com/own"), make(admin, signerName="example.com/other")
    path = make(admin)
    approve(admin, path)
    issued = {"status": {"certificate": when_done(admin, path)["certificate"]}}
    admin.patch(f"{own}/status", issued, headers=NOBODY).expect(200)
    refused = admin.patch(f"{other}/status", issued, headers=NOBODY).refused(403, "Forbidden")
    assert refused["message"].endswith('user not permitted to sign requests with signerName "example.com/other"')
    junk = {"status": {"certificate": in_base64(b"junk")}}
    admin.patch(f"{other}/status", junk, headers=NOBODY).refused(422, "Invalid")


def test_requests_are_selected_by_their_signer(admin: OverTLS) -> None:
    path = make(admin, signerName="example.com/selected")
    found = admin.get(REQUESTS, fieldSelector="spec.signerName=example.com/selected").expect(200)["items"]
    assert [each["metadata"]["name"] for each in found] == [path.rpartition("/")[2]]


def test_a_server_without_an_authority_for_clients_signs_nothing_and_a_later_start_does(tmp_path: Path) -> None:
    with Program(tmp_path, "--generate-admin=false") as program:
        with program.client() as admin:
            first, second = make(admin), make(admin)
            approve(admin, first)
            approve(admin, second)
        assert program.stop() == 0
        assert program.logged().count("no authority of its own for clients") == 1
    with Program(tmp_path) as program, program.client() as admin:
        assert certificate_of(when_done(admin, first)) != certificate_of(when_done(admin, second))
