"""Who may make, approve and sign requests."""

from __future__ import annotations

from typing import Any

import pytest

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import ALLOW, NO_OPINION, Attributes, Decision, Verdict
from clusterregistry.apiserver.registry.certificates.admission import admissions
from clusterregistry.apiserver.registry.certificates.resource import certificate_signing_request_resource
from tests.api.certificates.signing_requests import condition, in_base64, pkcs10, signing_request, subject

Object = dict[str, Any]

JANE = User("jane", "u1", ("devs", "system:authenticated"), {"a/b": ("1", "2")})
FORBIDDEN = 'certificatesigningrequests.certificates.k8s.io "a" is forbidden: '
RESOURCE = certificate_signing_request_resource(lambda: "2026-01-02T03:04:05Z")


class Rights:
    """Allows some verbs on some signers, and remembers what it was asked."""

    def __init__(self, *allowed: tuple[str, str], otherwise: Decision = NO_OPINION) -> None:
        self._allowed, self._otherwise = allowed, otherwise
        self.asked: list[tuple[str, str]] = []

    def authorize(self, attributes: Attributes) -> Decision:
        assert (attributes.group, attributes.resource, attributes.version) == ("certificates.k8s.io", "signers", "*")
        assert attributes.is_resource_request
        assert attributes.user == JANE
        self.asked.append((attributes.verb, attributes.name))
        return ALLOW if self.asked[-1] in self._allowed else self._otherwise


async def created(request: Object, user: User = JANE) -> Object:
    RESOURCE.strategy.prepare_for_create(request)
    await admissions(Rights())[""].admit(request, None, user=user, name="")
    return request


async def written(subresource: str, old: Object, rights: Rights, **status: Any) -> list[FieldError]:
    """Writes fields of the status through a subresource."""
    obj, strategy = {**old, "status": old["status"] | status}, RESOURCE.subresources[subresource].strategy
    strategy.prepare_for_update(obj, old)
    await admissions(rights)[subresource].admit(obj, old, user=JANE, name="a")
    return strategy.validate_update(obj, old)


async def test_a_new_request_names_its_user_whatever_the_client_sends() -> None:
    request = await created(signing_request(username="root", uid="0", groups=["system:masters"], extra={"c": ["d"]}))
    assert {name: request["spec"].get(name) for name in ("username", "uid", "groups", "extra")} == {
        "username": "jane",
        "uid": "u1",
        "groups": ["devs", "system:authenticated"],
        "extra": {"a/b": ["1", "2"]},
    }
    bare = await created(signing_request(username="root", uid="0", extra={"c": ["d"]}), User("joe"))
    assert bare["spec"].keys() == {"request", "signerName", "usages", "username"}


async def test_no_client_certificate_for_administrators() -> None:
    data = pkcs10(name=subject("jane", "devs", "system:masters"))
    with pytest.raises(APIError) as caught:
        await created(signing_request("a", data))
    group = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    assert (caught.value.code, str(caught.value)) == (403, FORBIDDEN + group)
    await created(signing_request("a", data, signerName="example.com/sig"))


async def test_an_invalid_request_is_left_to_validation() -> None:
    request = await created(signing_request("a", b"junk"))
    assert RESOURCE.strategy.validate(request)


async def test_an_update_of_the_request_itself_needs_nothing_more() -> None:
    rights, old = Rights(), signing_request("a")
    await admissions(rights)[""].admit(signing_request("a"), old, user=JANE, name="a")
    assert rights.asked == []


@pytest.mark.parametrize("name", ["example.com/sig", "example.com/*"])
@pytest.mark.parametrize(("subresource", "verb"), [("approval", "approve"), ("status", "sign")])
async def test_the_right_on_a_signer(subresource: str, verb: str, name: str) -> None:
    old = signing_request("a", signerName="example.com/sig")
    kind = "Approved" if subresource == "approval" else "Failed"
    conditions = [condition(kind)]
    assert await written(subresource, old, Rights((verb, name)), conditions=conditions) == []
    refused = Rights((verb, "example.com/other"), (verb, "*"), (verb, "other.com/*"), ("use", "example.com/sig"))
    with pytest.raises(APIError) as caught:
        await written(subresource, old, refused, conditions=conditions)
    message = f'{FORBIDDEN}user not permitted to {verb} requests with signerName "example.com/sig"'
    assert (caught.value.code, str(caught.value)) == (403, message)
    assert refused.asked == [(verb, "example.com/sig"), (verb, "example.com/*")]


async def test_an_approval_that_changes_nothing_needs_the_right_too() -> None:
    with pytest.raises(APIError, match="not permitted to approve"):
        await written("approval", signing_request("a"), Rights())


async def test_a_status_that_changes_nothing_needs_no_right() -> None:
    assert await written("status", signing_request("a"), Rights()) == []


async def test_the_signer_of_the_stored_request_counts() -> None:
    old = signing_request("a", signerName="example.com/sig")
    obj = signing_request("a", signerName="example.com/own") | {"status": {"conditions": [condition("Approved")]}}
    RESOURCE.subresources["approval"].strategy.prepare_for_update(obj, old)
    rights = Rights(("approve", "example.com/own"))
    with pytest.raises(APIError, match=r"example\.com/sig"):
        await admissions(rights)["approval"].admit(obj, old, user=JANE, name="a")


@pytest.mark.parametrize(
    ("subresource", "status"),
    [
        ("approval", {"conditions": [condition("Approved", "False")]}),
        ("status", {"conditions": [condition("Approved")]}),
        ("status", {"certificate": in_base64(b"junk")}),
    ],
)
async def test_validation_comes_before_the_right(subresource: str, status: Object) -> None:
    rights = Rights()
    assert await written(subresource, signing_request("a"), rights, **status)
    assert rights.asked == []


async def test_without_an_answer_of_the_authorizer_it_is_503() -> None:
    silent = Rights(otherwise=Decision(Verdict.DENY, "no answer", undecided=True))
    with pytest.raises(APIError) as caught:
        await written("approval", signing_request("a"), silent, conditions=[condition("Approved")])
    assert caught.value.code == 503
