"""Documents that are small to send and large to read: refused, each with what is wrong, and soon forgotten."""

from __future__ import annotations

import gzip
import json
import threading

import pytest

from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.api.objects import CLUSTERS, cluster
from tests.system.attacks.raw import SECRET, Raw

DRY = CLUSTERS.encode() + b"?dryRun=All"
VICTIM = f"{CLUSTERS}/{SECRET}?dryRun=All".encode()
JSON, YAML = b"application/json", b"application/yaml"
MEBIBYTE = 1024 * 1024
LIMIT = 3 * MEBIBYTE


def posted(raw: Raw, body: bytes, content_type: bytes = JSON) -> int:
    assert len(body) <= LIMIT
    return raw.ask(DRY, method=b"POST", token=ADMIN_TOKEN, headers=[b"Content-Type: " + content_type], body=body).status


def patched(raw: Raw, body: bytes, kind: bytes) -> int:
    content_type = b"Content-Type: application/" + kind
    return raw.ask(VICTIM, method=b"PATCH", token=ADMIN_TOKEN, headers=[content_type], body=body).status


def with_spec(spec: bytes) -> bytes:
    head = b'{"apiVersion":"clusterregistry.k8s.io/v1alpha1","kind":"Cluster","metadata":{"name":"x"},"spec":'
    return head + spec + b"}"


def with_metadata(metadata: bytes) -> bytes:
    head = b'{"apiVersion":"clusterregistry.k8s.io/v1alpha1","kind":"Cluster","metadata":{"name":"x",'
    return head + metadata + b"}}"


DEEP = {
    "lists": b"[" * LIMIT,
    "maps": b'{"a":' * 600_000,
    "closed": with_spec(b"[" * 90_000 + b"]" * 90_000),
    "a little too deep": with_spec(b'{"a":' * 200 + b"1" + b"}" * 200),
}


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
def test_json_that_is_nested_without_end(raw: Raw, body: bytes) -> None:
    assert posted(raw, body) == 400


DEEP_YAML = {
    "flow": b"[" * LIMIT,
    "flow maps": b"{a: " * 700_000,
    "block": b"- " * 1_500_000,
    "keys": b"? " * 1_500_000,
    "indented": b"".join(b" " * depth + b"a:\n" for depth in range(2000)),
}


@pytest.mark.parametrize("body", DEEP_YAML.values(), ids=DEEP_YAML)
def test_yaml_that_is_nested_without_end(raw: Raw, body: bytes) -> None:
    assert posted(raw, body, YAML) == 400


def laughs(first: bytes, again: bytes) -> bytes:
    """Each line ten times the one before."""
    letters = b"bcdefghijklm"
    lines = [again % {b"new": bytes([letter]), b"old": bytes([letter - 1])} for letter in letters]
    return b"\n".join([b"a: &a " + first, *lines])


ALIASES = {
    "lists": laughs(b"[x]", b"%(new)b: &%(new)b [" + b",".join([b"*%(old)b"] * 10) + b"]"),
    "maps": laughs(
        b"{x: y}", b"%(new)b: &%(new)b {" + b", ".join(b"k%d: *%%(old)b" % number for number in range(10)) + b"}"
    ),
    "one list, many times": b"a: &a [" + b"x," * 1000 + b"x]\nb: [" + b"*a," * 100_000 + b"*a]",
    "merges": b"a: &a {"
    + b", ".join(b"k%d: 1" % number for number in range(1000))
    + b"}\nb: ["
    + b",".join([b"{<<: *a}"] * 50_000)
    + b"]",
    "itself": b"a: &a [*a]",
    "anchors": b"".join(b"- &a%d x\n" % number for number in range(200_000)),
}


@pytest.mark.parametrize("body", ALIASES.values(), ids=ALIASES)
def test_yaml_whose_aliases_multiply(raw: Raw, body: bytes) -> None:
    assert posted(raw, body, YAML) == 400


@pytest.mark.parametrize("tag", [b"!!python/object/apply:os.system ['true']", b"!!python/name:os.system", b"!x y"])
def test_yaml_makes_no_objects_of_ours(raw: Raw, tag: bytes) -> None:
    assert posted(raw, b"apiVersion: " + tag, YAML) == 400


MANY = {
    "lists": with_spec(b"[" + b"[]," * 1_000_000 + b"[]]"),
    "keys": with_spec(b"{" + b",".join(b'"%x":[]' % number for number in range(220_000)) + b"}"),
    "numbers": with_spec(b"[" + b"1," * 1_500_000 + b"1]"),
    "the same key": with_spec(b"{" + b",".join([b'"a":1'] * 400_000) + b"}"),
}


@pytest.mark.parametrize("body", MANY.values(), ids=MANY)
def test_documents_of_a_million_values(raw: Raw, body: bytes) -> None:
    assert posted(raw, body) == 400


def test_yaml_of_a_million_values(raw: Raw) -> None:
    assert posted(raw, b"- a\n" * 700_000, YAML) == 400


NUMBERS = {
    "digits": b"1" * 2_900_000,
    "exponent": b"1e999999999",
    "fraction": b"0." + b"1" * 2_900_000,
    "negative": b"-" + b"9" * 2_900_000,
    "tiny": b"1e-999999999",
}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_numbers_without_end(raw: Raw, number: bytes) -> None:
    assert posted(raw, with_spec(number)) in {400, 422}
    assert posted(raw, b"a: " + number, YAML) == 400


@pytest.mark.parametrize(
    "number",
    [b"0x" + b"f" * 2_900_000, b"0b" + b"1" * 2_900_000, b"1" + b":1" * 1_400_000],
    ids=["of base 16", "of base 2", "of base 60"],
)
def test_numbers_that_only_yaml_has(raw: Raw, number: bytes) -> None:
    assert posted(raw, b"a: " + number, YAML) == 400


LABELS = {
    "long value": b'"labels":{"a":"' + b"b" * 2_900_000 + b'"}',
    "long key": b'"labels":{"' + b"b" * 2_900_000 + b'":"a"}',
    "many that are wrong": b'"labels":{' + b",".join(b'"-%d":"-"' % number for number in range(50_000)) + b"}",
    "no text": b'"labels":{"a":{"b":"c"}}',
    "long name": b'"generateName":"' + b"a" * 2_900_000 + b'"',
    "finalizers": b'"finalizers":["' + b"a" * 2_900_000 + b'"]',
}


@pytest.mark.parametrize("metadata", LABELS.values(), ids=LABELS)
def test_metadata_that_is_too_large(raw: Raw, metadata: bytes) -> None:
    assert posted(raw, with_metadata(metadata)) in {400, 422}


def test_many_errors_are_reported_in_part(raw: Raw) -> None:
    wrong = with_metadata(LABELS["many that are wrong"])
    reply = raw.ask(DRY, method=b"POST", token=ADMIN_TOKEN, body=wrong)
    assert reply.status == 422
    assert b", and 99500 more" in reply.received
    assert len(reply.received) < MEBIBYTE


def test_a_patch_that_doubles_what_it_copies(raw: Raw) -> None:
    start = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}}]
    copies = [
        {"op": "copy", "from": "/metadata/annotations", "path": f"/metadata/annotations/{number}"}
        for number in range(60)
    ]
    assert patched(raw, json.dumps(start + copies).encode(), b"json-patch+json") in {413, 422}


@pytest.mark.parametrize("kind", [b"merge-patch+json", b"strategic-merge-patch+json", b"json-patch+json"])
def test_patches_that_are_nested_without_end(raw: Raw, kind: bytes) -> None:
    assert patched(raw, b'{"a":' * 100_000, kind) == 400
    assert patched(raw, b"[" * 150_000, kind) == 400


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate", b"br", b"gzip, gzip"])
def test_a_compressed_body_is_never_unpacked(raw: Raw, encoding: bytes) -> None:
    """As under kube-apiserver a body is what it is: this one would be more than two gigabytes."""
    packed = gzip.compress(bytes(32 * MEBIBYTE))
    bomb = packed * (LIMIT // len(packed))
    raw.program.forget_peak()
    before = raw.program.resident_bytes()
    for header in (b"Content-Encoding: " + encoding, b"X-Other: yes"):
        headers = [b"Content-Type: application/json", header]
        assert raw.ask(DRY, method=b"POST", token=ADMIN_TOKEN, headers=headers, body=bomb).status == 400
    assert raw.program.peak_bytes() - before < 64 * MEBIBYTE


AT_ONCE = {
    "white space": (with_spec(b" " * 3_000_000 + b"{}"), 201),
    "one text": (with_spec(b'{"clusterID":"' + b"x" * 3_000_000 + b'"}'), 422),
    "empty lists": (MANY["lists"], 400),
}


@pytest.mark.parametrize(("body", "status"), AT_ONCE.values(), ids=AT_ONCE)
def test_sixteen_bodies_of_three_megabytes_at_once(raw: Raw, body: bytes, status: int) -> None:
    raw.program.forget_peak()
    before, statuses = raw.program.resident_bytes(), []
    threads = [threading.Thread(target=lambda: statuses.append(posted(raw, body))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [status] * 16
    grown = (raw.program.peak_bytes() - before) / MEBIBYTE
    assert grown < 256, f"{grown:.0f} MiB at the peak"


def test_slow_uploads_take_only_the_memory_of_their_bytes(raw: Raw) -> None:
    """Bodies of unknown length, each just below the limit, all at once."""
    before = raw.program.resident_bytes()
    head = b"POST %b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\n" % (DRY, ADMIN_TOKEN.encode())
    uploads = [raw.program.socket(seconds=60, trust=raw.trust) for _ in range(16)]
    try:
        for upload in uploads:
            upload.sendall(head + b"Content-Length: %d\r\n\r\n" % LIMIT + b" " * (LIMIT - 1))
        assert raw.ask(b"/readyz").status == 200
        assert raw.program.resident_bytes() - before < 16 * LIMIT + 64 * MEBIBYTE
    finally:
        for upload in uploads:
            upload.close()


def test_an_object_is_still_taken(raw: Raw) -> None:
    assert posted(raw, json.dumps(cluster("good")).encode()) == 201
