from __future__ import annotations

import base64
import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.codecs import DecodeError
from clusterregistry.apimachinery.codecs.protobuf_codec import MAGIC, decode, encode
from clusterregistry.apimachinery.codecs.protobuf_messages import CLASSES, KINDS
from tests.api.go_objects import ACCEPTED, name_of

RECORDED = json.loads((Path(__file__).parent / "kubernetes_bodies.json").read_text())
"""Bodies that kubectl sent and kube-apiserver answered, with what they said in JSON (null left out)."""

REVIEW = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}

texts = st.text(st.characters(codec="utf-8"), max_size=6)
keys = st.text(string.ascii_lowercase, min_size=1, max_size=4)
times = st.datetimes().map(lambda time: time.isoformat(timespec="seconds") + "Z")


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def filled(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return strategy.filter(bool)


def listed(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, min_size=1, max_size=3)


def mapped(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(keys, strategy, min_size=1, max_size=3)


text = filled(texts)
metadata = some(
    name=text,
    generation=st.integers(1, 2**63 - 1),
    creationTimestamp=times,
    deletionTimestamp=times,
    deletionGracePeriodSeconds=st.integers(-(2**63), 2**63 - 1),
    labels=mapped(texts),
    finalizers=listed(texts),
    ownerReferences=listed(
        st.fixed_dictionaries(
            {"apiVersion": texts, "kind": texts, "name": texts, "uid": texts}, optional={"controller": st.booleans()}
        )
    ),
    managedFields=listed(some(manager=text, time=times, fieldsV1=mapped(st.just({})))),
)
requirement = st.fixed_dictionaries({"key": texts, "operator": texts}, optional={"values": listed(texts)})
selector = some(rawSelector=text, requirements=listed(requirement))
attributes = some(namespace=text, verb=text, name=text, fieldSelector=selector, labelSelector=selector)
review = some(
    metadata=metadata,
    spec=some(
        user=text,
        uid=text,
        groups=listed(texts),
        extra=mapped(st.lists(texts, max_size=2)),
        resourceAttributes=attributes,
        nonResourceAttributes=some(path=text, verb=text),
    ),
    status=st.fixed_dictionaries({"allowed": st.booleans()}, optional={"denied": st.just(True), "reason": text}),
)
role = some(
    metadata=metadata,
    rules=listed(some(verbs=listed(texts), apiGroups=listed(texts), nonResourceURLs=listed(texts))),
    aggregationRule=some(clusterRoleSelectors=listed(some(matchLabels=mapped(texts)))),
)


@pytest.mark.parametrize("recorded", RECORDED, ids=[each["from"] for each in RECORDED])
def test_a_recorded_body_is_what_json_says(recorded: dict[str, Any]) -> None:
    assert decode(base64.b64decode(recorded["body"])).value == recorded["value"]


@pytest.mark.parametrize("recorded", RECORDED, ids=[each["from"] for each in RECORDED])
def test_what_is_encoded_is_decoded_to_the_same(recorded: dict[str, Any]) -> None:
    assert decode(encode(recorded["value"])).value == recorded["value"]


@given(review)
def test_every_review_survives_a_round_trip(value: dict[str, Any]) -> None:
    value = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"} | value
    assert decode(encode(value)).value == value


@given(role)
def test_every_role_survives_a_round_trip(value: dict[str, Any]) -> None:
    value = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"} | value
    assert decode(encode(value)).value == value


@pytest.mark.parametrize("entry", ACCEPTED, ids=name_of)
def test_a_message_that_go_wrote_is_what_json_says(entry: dict[str, Any]) -> None:
    assert decode(base64.b64decode(entry["protobuf"])).value == without_nulls(entry["answer"])


@pytest.mark.parametrize("entry", ACCEPTED, ids=name_of)
def test_an_object_of_go_survives_a_round_trip(entry: dict[str, Any]) -> None:
    assert decode(encode(entry["answer"])).value == without_nulls(entry["answer"])


@pytest.mark.parametrize("time", ["1969-12-31T23:59:59.999999Z", "2020-02-03T04:05:06.000007Z"])
def test_a_time_with_decimals_survives_a_round_trip(time: str) -> None:
    value = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"renewTime": time}}
    assert decode(encode(value)).value == value


def without_nulls(value: Any) -> Any:
    """The value without null, which is absent from protobuf."""
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: without_nulls(item) for name, item in value.items() if item is not None}


def test_an_option_that_is_zero_or_false_was_still_given() -> None:
    value = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "orphanDependents": False,
        "preconditions": {"uid": ""},
    }
    assert decode(encode(value)).value == value


def test_a_time_without_anything_in_it_is_left_out() -> None:
    # 0x42: field 8, creationTimestamp; Go writes its zero time as an empty message
    raw = CLASSES["ClusterRole"](metadata=CLASSES["ObjectMeta"].FromString(b"\x42\x00")).SerializeToString()
    assert decode(enveloped(raw, "rbac.authorization.k8s.io/v1", "ClusterRole")).value["metadata"] == {}


def test_the_first_second_of_1970_is_a_time() -> None:
    value = {**REVIEW, "metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"}}
    assert decode(encode(value)).value == value


def test_an_envelope_without_a_kind_holds_what_the_path_asks_for() -> None:
    default = (REVIEW["apiVersion"], REVIEW["kind"])
    assert decode(enveloped(b"", "", ""), default_type=default).value == REVIEW
    assert decode(enveloped(b"", *default), default_type=("v1", "Status")).value == REVIEW


def test_fields_of_later_versions_are_skipped() -> None:
    body = enveloped(b"\xfa\x01\x03new" + CLASSES["SelfSubjectAccessReview"]().SerializeToString(), *REVIEW.values())
    assert decode(body).value == REVIEW


def test_values_without_a_field_are_left_out() -> None:
    assert decode(encode({**REVIEW, "surprise": 1, "spec": {"bogus": 2}})).value == {**REVIEW, "spec": {}}


def test_a_key_without_values_is_kept() -> None:
    """Null in JSON, a nil slice in Go."""
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    asked = decode(encode({**kind, "spec": {"user": "u", "extra": {"scopes": None}}})).value
    assert asked["spec"] == {"user": "u", "extra": {"scopes": []}}


def enveloped(raw: bytes, api_version: str, kind: str) -> bytes:
    envelope = CLASSES["Unknown"](raw=raw)
    envelope.typeMeta.apiVersion, envelope.typeMeta.kind = api_version, kind
    return MAGIC + bytes(envelope.SerializeToString())


GOOD = encode({**REVIEW, "spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}})
GROUPS_IN_GROUPS = b"\x0b" * 100_000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "empty data"),
        (MAGIC, "empty body"),
        (b"{}", "expected prefix"),
        (b"k8s", "expected prefix"),
        (MAGIC + b"\xff\xff", "the envelope is malformed or cut off"),
        (GOOD[:-3], "malformed or cut off"),
        (MAGIC + GROUPS_IN_GROUPS, "malformed"),
        (enveloped(GROUPS_IN_GROUPS, *REVIEW.values()), "SelfSubjectAccessReview is malformed"),
        (enveloped(b"\x12\x05\x0a\x80", *REVIEW.values()), "SelfSubjectAccessReview is malformed"),
        (enveloped(b"\x12\x03\x0a\x01\xff", *REVIEW.values()), "SelfSubjectAccessReview is malformed"),
        (enveloped(b"", "v1", "Pod"), "no kind 'Pod' of version 'v1'"),
        (enveloped(b"", "", ""), "no kind ''"),
        (enveloped(b"\x0a\x04\x42\x02\x08\xff", *REVIEW.values()), "malformed"),
        (enveloped(b"\x0a\x0c\x42\x0a\x08" + b"\xff" * 8 + b"\x7f", *REVIEW.values()), "out of range for a time"),
        (enveloped(b"\x0a\x09\x8a\x01\x06\x3a\x04\x0a\x02{]", *REVIEW.values()), "invalid character"),
        (MAGIC + bytes(CLASSES["Unknown"](contentEncoding="gzip").SerializeToString()), "'gzip' is not supported"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_no_body_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message.replace("(", r"\(")):
        decode(body)


def outcome(body: bytes) -> Any:
    """The value, or the text that says why there is none."""
    try:
        return decode(body).value
    except DecodeError as error:
        return str(error)


@given(st.binary(max_size=200), st.sampled_from(sorted(KINDS)))
def test_no_bytes_do_more_than_fail_to_decode(data: bytes, which: tuple[str, str]) -> None:
    for body in (data, MAGIC + data, enveloped(data, *which)):
        assert outcome(body)


@given(st.sampled_from(RECORDED), st.data())
def test_a_damaged_body_does_no_more_than_fail_to_decode(recorded: dict[str, Any], data: st.DataObject) -> None:
    body = bytearray(base64.b64decode(recorded["body"]))
    for _ in range(3):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    assert outcome(bytes(body))
