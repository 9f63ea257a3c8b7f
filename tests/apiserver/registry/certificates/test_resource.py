"""Which part of a request each endpoint writes, and how requests are shown."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.apimachinery.meta.json_types import ShapeError
from clusterregistry.apiserver.registry.certificates.resource import certificate_signing_request_resource
from tests.api.certificates.signing_requests import condition, in_base64, pkcs10, signing_request

Object = dict[str, Any]

NOW, BEFORE = "2026-01-02T03:04:05Z", "2020-02-03T04:05:06Z"
RESOURCE = certificate_signing_request_resource(lambda: NOW)
APPROVED = condition("Approved", lastUpdateTime=BEFORE, lastTransitionTime=BEFORE)


def stored(**status: Any) -> Object:
    return signing_request(username="jane") | {"status": status}


def updated(subresource: str, old: Object, new: Object) -> Object:
    """The new object as it is stored; the old one must not change."""
    before, obj = copy.deepcopy(old), copy.deepcopy(new)
    strategy = RESOURCE.subresources[subresource].strategy if subresource else RESOURCE.strategy
    strategy.prepare_for_update(obj, old)
    assert old == before
    return obj


@pytest.mark.parametrize("subresource", ["", "approval", "status"])
def test_no_endpoint_changes_the_spec(subresource: str) -> None:
    new = signing_request(signerName="example.com/other", expirationSeconds=3600)
    assert updated(subresource, stored(), new)["spec"] == stored()["spec"]


def test_the_request_itself_keeps_its_status() -> None:
    old = stored(conditions=[APPROVED], certificate="AAAA")
    assert updated("", old, stored(conditions=[condition("Denied")]))["status"] == old["status"]


def test_an_approval_writes_conditions_alone() -> None:
    old = stored(certificate="AAAA")
    new = stored(conditions=[condition("Denied")], certificate="BBBB")
    dated = condition("Denied", lastUpdateTime=NOW, lastTransitionTime=NOW)
    assert updated("approval", old, new)["status"] == {"conditions": [dated], "certificate": "AAAA"}
    assert updated("approval", stored(conditions=[APPROVED]), stored())["status"] == {}


def test_a_signer_cannot_change_a_decision() -> None:
    old = stored(conditions=[APPROVED])
    changed = condition("Approved", reason="Another")
    failed = condition("Failed")
    found = updated("status", old, stored(conditions=[failed, changed], certificate="AAAA"))["status"]
    dated = failed | {"lastUpdateTime": NOW, "lastTransitionTime": NOW}
    assert found == {"conditions": [dated, APPROVED], "certificate": "AAAA"}


def test_a_condition_keeps_its_transition_time_with_its_status() -> None:
    old = stored(conditions=[condition("Own", "True", lastTransitionTime=BEFORE)])
    for status, since in (("True", BEFORE), ("False", NOW)):
        (found,) = updated("status", old, stored(conditions=[condition("Own", status)]))["status"]["conditions"]
        assert (found["lastUpdateTime"], found["lastTransitionTime"]) == (NOW, since)
    given = condition("Own", "False", lastUpdateTime=BEFORE, lastTransitionTime=BEFORE)
    assert updated("approval", old, stored(conditions=[given]))["status"] == {"conditions": [given]}


def test_a_new_request_has_no_status() -> None:
    obj = stored(conditions=[APPROVED], certificate="AAAA")
    RESOURCE.strategy.prepare_for_create(obj)
    assert obj["status"] == {}
    assert "username" not in obj["spec"]


@pytest.mark.parametrize(
    ("request_", "cells"),
    [
        (stored(), ["a/b", "jane", "<none>", "Pending"]),
        (stored(conditions=[APPROVED]), ["a/b", "jane", "<none>", "Approved"]),
        (stored(conditions=[APPROVED], certificate="AAAA"), ["a/b", "jane", "<none>", "Approved,Issued"]),
        (
            stored(conditions=[condition("Failed"), condition("Denied"), APPROVED]),
            ["a/b", "jane", "<none>", "Denied,Failed"],
        ),
    ],
)
def test_columns(request_: Object, cells: list[str]) -> None:
    request_ = request_ | {"spec": request_["spec"] | {"signerName": "a/b"}}
    columns = RESOURCE.versions[0].columns
    names = ["Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"]  # codespell:ignore requestor
    assert [column.name for column in columns] == names
    assert [column.cell(request_) for column in columns[2:]] == cells


def test_the_duration_that_was_asked_for_is_shown_as_people_say_it() -> None:
    column = RESOURCE.versions[0].columns[4]
    assert column.cell(signing_request(expirationSeconds=86400)) == "24h"
    assert column.cell(signing_request(expirationSeconds=0)) == "0s"


def test_the_form_of_the_struct() -> None:
    decode = RESOURCE.versions[0].decode
    assert decode is not None
    obj: Object = {"spec": {"request": in_base64(pkcs10()), "usages": [], "expirationSeconds": 0, "more": 1}}
    assert decode(obj) == ["spec.more"]
    assert obj == {
        "spec": {"request": in_base64(pkcs10()), "signerName": "", "expirationSeconds": 0},
        "status": {},
    }


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"request": "not base64!"}, "illegal base64 data at input byte 3"),
        ({"request": 5}, "number into Go struct field CertificateSigningRequestSpec.spec.request of type []uint8"),
        (
            {"usages": "x"},
            "string into Go struct field CertificateSigningRequestSpec.spec.usages of type []v1.KeyUsage",
        ),
        (
            {"expirationSeconds": "600"},
            "string into Go struct field CertificateSigningRequestSpec.spec.expirationSeconds of type int32",
        ),
        (
            {"extra": {"a": "b"}},
            "string into Go struct field CertificateSigningRequestSpec.spec.extra of type v1.ExtraValue",
        ),
    ],
)
def test_values_of_wrong_types(spec: Object, message: str) -> None:
    decode = RESOURCE.versions[0].decode
    assert decode is not None
    with pytest.raises(ShapeError) as caught:
        decode({"spec": spec})
    assert str(caught.value) in (message, f"json: cannot unmarshal {message}")


def test_fields_and_names_of_the_resource() -> None:
    assert RESOURCE.qualified_name == "certificatesigningrequests.certificates.k8s.io"
    assert {name: each(stored()) for name, each in RESOURCE.selectable_fields.items()} == {
        "spec.signerName": "kubernetes.io/kube-apiserver-client"
    }
    assert sorted(RESOURCE.subresources) == ["approval", "status"]
