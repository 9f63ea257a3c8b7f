"""Bodies that are meant to cost a server as much as possible, by content type; ``hostile_bodies`` sends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tools.live_server import ADMIN_TOKEN

LIMIT = 3 * 1024 * 1024
"""Bytes of a body that the server reads."""

USER_TOKEN = "nobodytoken"  # noqa: S105 - it opens nothing but the server of one check
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CLUSTERS = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"
VICTIM = f"{CLUSTERS}/victim"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC_PATCH, APPLY_PATCH = "application/strategic-merge-patch+json", "application/apply-patch+yaml"

Make = Callable[[], bytes]
Item = Callable[[int], bytes] | bytes


@dataclass(frozen=True, kw_only=True)
class Case:
    """One body and how it is sent. ``victim`` is the spec of the cluster that a patch changes."""

    name: str
    content_type: str
    make: Make
    accept: str = JSON
    method: str = "POST"
    path: str = REVIEWS
    token: str = USER_TOKEN
    is_audited: bool = False
    victim: Make = field(default=lambda: b"{}")


patched = partial(Case, method="PATCH", path=VICTIM, token=ADMIN_TOKEN)
created = partial(Case, content_type=JSON, path=f"{CLUSTERS}?dryRun=All", token=ADMIN_TOKEN)
applied = partial(patched, content_type=APPLY_PATCH, path=f"{VICTIM}?fieldManager=m&force=true")


def cases() -> Iterator[Case]:
    """All that is tried."""
    yield from _json_cases()
    yield from _yaml_cases()
    yield from _protobuf_cases()
    yield from _patch_cases()
    yield from _audited_cases()


def listed(start: bytes, item: Item, end: bytes, *, count: int) -> bytes:
    """So many items with commas between them."""
    return start + b",".join(item if isinstance(item, bytes) else item(number) for number in range(count)) + end


def cluster(rest: bytes) -> bytes:
    """A cluster with some more parts, ``"spec":...`` for example."""
    return (
        b'{"apiVersion":"clusterregistry.k8s.io/v1alpha1","kind":"Cluster","metadata":{"name":"victim"},' + rest + b"}"
    )


# JSON

_ATTRIBUTES = b'{"spec":{"resourceAttributes":{"verb":"get",'
_REQUIREMENTS, _END = _ATTRIBUTES + b'"labelSelector":{"requirements":[', b"]}}}}"
_VERBOSE = b'{"key":"a","operator":"In","values":["a"]}'


def _json_cases() -> Iterator[Case]:
    bodies: dict[str, Make] = {
        "500 keys repeated below a key of 1 MB": lambda: _repeated(1_000_000, 500),
        "60,000 keys repeated below a key of 1 MB": lambda: _repeated(1_000_000, 60_000),
        "keys repeated, each of them long": lambda: listed(
            b"{", lambda n: b'"%d%b":1' % (n % 700, b"k" * 2000), b"}", count=1400
        ),
        "empty requirements": lambda: listed(_REQUIREMENTS, b"{}", _END, count=99_000),
        "requirements with values": lambda: listed(_REQUIREMENTS, _VERBOSE, _END, count=39_000),
        "unknown fields": lambda: listed(_REQUIREMENTS, lambda n: b'{"x%d":1}' % n, _END, count=99_000),
        "too many values": lambda: listed(_REQUIREMENTS, b"[]", _END, count=1_000_000),
        "a text without an end behind too many values": lambda: (
            b"[" + b"," * 200_001 + b'"' + rb"\"" * ((LIMIT - 200_010) // 2)
        ),
        "escapes and a lone surrogate": lambda: (
            b'{"metadata":{"annotations":{"a":"' + b"\\n" * ((LIMIT - 100) // 2) + b'\\ud800"}}}'
        ),
        "bytes that are no UTF-8": lambda: b'{"kind":"' + b"\xff" * (LIMIT - 20) + b'"}',
        "owner references": lambda: listed(b'{"metadata":{"ownerReferences":[', b"{}", b"]}}", count=99_000),
        "owner references that differ": lambda: listed(
            b'{"metadata":{"ownerReferences":[', lambda n: b'{"uid":"%d"}' % n, b"]}}", count=90_000
        ),
        "labels": lambda: listed(b'{"metadata":{"labels":{', lambda n: b'"-%d":"-"' % n, b"}}}", count=190_000),
        "managed fields": lambda: _managed_fields(listed(b"{", lambda n: b'"f:%d":{}' % n, b"}", count=99_000)),
        "deep managed fields": lambda: _managed_fields(
            listed(b"{", lambda n: b'"f:%d":' % n + b'{"f:a":' * 99 + b"{}" + b"}" * 99, b"}", count=1900)
        ),
        "one text": lambda: b'{"spec":{"resourceAttributes":{"verb":"' + b"v" * (LIMIT - 100) + b'"}}}',
        "a label selector": lambda: _ATTRIBUTES + b'"labelSelector":{"rawSelector":"' + b"a," * 1_500_000 + b'a"}}}}',
        "a field selector": lambda: _ATTRIBUTES + b'"fieldSelector":{"rawSelector":"' + b"a=b," * 780_000 + b'a=b"}}}}',
    }
    for name, make in bodies.items():
        yield Case(name=name, content_type=JSON, make=make)
    for name, accept in (("answered in YAML", YAML), ("answered in protobuf", PROTOBUF)):
        yield Case(name=name, content_type=JSON, make=bodies["requirements with values"], accept=accept)
    yield created(name="a cluster with endpoints", make=lambda: cluster(b'"spec":' + _endpoints(39_000)))
    yield created(name="a cluster with badly typed values", make=lambda: cluster(_badly_typed(190_000)[1:-1]))
    yield created(
        name="a cluster with unknown fields",
        make=lambda: cluster(listed(b'"spec":{', lambda n: b'"x%d":1' % n, b"}", count=190_000)),
    )


def _repeated(size: int, count: int) -> bytes:
    return listed(b'{"' + b"k" * size + b'":{', lambda n: b'"a%d":1,"a%d":1' % (n, n), b"}}", count=count)


def _managed_fields(fields: bytes) -> bytes:
    entry = b'{"manager":"m","operation":"Update","apiVersion":"authorization.k8s.io/v1","fieldsType":"FieldsV1",'
    spec = b'{"spec":{"resourceAttributes":{"verb":"get","resource":"x"}},"metadata":{"managedFields":['
    return spec + entry + b'"fieldsV1":' + fields + b"}]}}"


def _endpoints(count: int, item: bytes = b'{"clientCIDR":"a","serverAddress":"b"}') -> bytes:
    return listed(b'{"kubernetesApiEndpoints":{"serverEndpoints":[', item, b"]}}", count=count)


def _badly_typed(count: int) -> bytes:
    return b'{"spec":' + _endpoints(count, b"1") + b"}"


# YAML


def _yaml_cases() -> Iterator[Case]:
    bodies: dict[str, Make] = {
        "an alias as a key, 2,000 times": lambda: _alias_keys(2000, 100_000),
        "an alias as a key, as often as there is room": lambda: _alias_keys(140_000, 1_000_000),
        "950 aliases of a text of 100 KB": lambda: _aliases(950, 100_000),
        "150 aliases of a text of 20 KB": lambda: _aliases(150, 20_000),
        "keys repeated below a long key": lambda: (
            b"? " + b"k" * 1_000_000 + b"\n: " + b"".join(b"\n  a%d: 1" % (n % 60_000) for n in range(120_000))
        ),
        "items": lambda: b"- a\n" * (LIMIT // 4),
        "as many items as are allowed": lambda: b"- a\n" * 199_000,
        "keys": lambda: b"".join(b"a%d: 1\n" % number for number in range(199_000)),
        "flow lists": lambda: b"a: [" + b"[]," * 190_000 + b"[]]",
        "JSON that is YAML after all": lambda: listed(b"{", lambda n: b'"a%d":1' % n, b",'b': 1}", count=190_000),
        "one text": lambda: b"spec: {resourceAttributes: {verb: " + b"v" * (LIMIT - 100) + b"}}",
        "escapes": lambda: b'a: "' + b"\\x41" * (LIMIT // 4 - 100) + b'"',
        "anchors": lambda: b"".join(b"- &a%d x\n" % number for number in range(199_000)),
        "comments": lambda: b"#\n" * (LIMIT // 2),
        "numbers": lambda: b"- 1_0\n" * 199_000,
        "floats as keys": lambda: b"".join(b"1.%07d: 1\n" % (37 * number) for number in range(133_000)),
        "tag directives": lambda: b"".join(b"%%TAG !%d! a\n" % number for number in range(180_000)) + b"--- {}\n",
        "tags with a long prefix": lambda: b"%TAG !a! tag:" + b"x" * 1_000_000 + b"\n---\n" + b"- !a!b c\n" * 199_000,
    }
    for name, make in bodies.items():
        yield Case(name=name, content_type=YAML, make=make)


def _alias_keys(count: int, size: int) -> bytes:
    return b"a: &k " + b"x" * size + b"\nb:\n" + b"  ? *k\n  : 1\n" * count


def _aliases(count: int, size: int, letter: bytes = b"x") -> bytes:
    head = b"metadata:\n  annotations:\n    a: &k " + letter * (size // len(letter)) + b"\n"
    return head + b"".join(b"    k%d: *k\n" % number for number in range(count))


# Protobuf


def _protobuf_cases() -> Iterator[Case]:
    bodies: dict[str, Make] = {
        "empty requirements": lambda: _requirements(b""),
        "as many requirements as are allowed": lambda: _requirements(b"", count=99_000),
        "requirements with empty values": lambda: _requirements(message(3, b"") * 50),
        "empty managed fields": lambda: _metadata(message(17, b"")),
        "empty finalizers": lambda: _metadata(message(14, b"")),
        "empty labels": lambda: _metadata(message(11, b"")),
        "field sets in JSON": lambda: _metadata(message(17, message(7, message(1, b"[" + b"[]," * 65_000 + b"[]]")))),
        "unknown fields": lambda: review_in_protobuf(message(99, b"") * 1_000_000),
    }
    for name, make in bodies.items():
        yield Case(name=name, content_type=PROTOBUF, make=make)


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def message(number: int, content: bytes) -> bytes:
    """A field of a protobuf message that has a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def review_in_protobuf(raw: bytes) -> bytes:
    """A SelfSubjectAccessReview in its envelope."""
    meta = message(1, b"authorization.k8s.io/v1") + message(2, b"SelfSubjectAccessReview")
    return b"k8s\x00" + message(1, meta) + message(2, raw)


def _requirements(content: bytes, *, count: int = LIMIT) -> bytes:
    one = message(2, content)
    return review_in_protobuf(message(2, message(1, message(9, one * min(count, (LIMIT - 200) // len(one))))))


def _metadata(one: bytes) -> bytes:
    return review_in_protobuf(message(1, one * ((LIMIT - 200) // len(one))))


# Patches


def _patch_cases() -> Iterator[Case]:
    insert = b'{"op":"add","path":"/spec/kubernetesApiEndpoints/serverEndpoints/0","value":{}}'
    yield patched(
        name="10,000 inserts into a list of 99,000",
        content_type=JSON_PATCH,
        make=lambda: listed(b"[", insert, b"]", count=10_000),
        victim=lambda: _endpoints(99_000, b"{}"),
    )
    yield patched(name="deep paths", content_type=JSON_PATCH, make=_deep_paths)
    bodies: dict[str, Make] = {
        "badly typed values": lambda: _badly_typed(190_000),
        "unknown fields": lambda: listed(b'{"spec":{', lambda n: b'"x%d":1' % n, b"}}", count=190_000),
        "endpoints": lambda: b'{"spec":' + _endpoints(60_000, b'{"clientCIDR":"a"}') + b"}",
        "keys repeated below a key of 1 MB": lambda: _repeated(1_000_000, 60_000),
    }
    for name, make in bodies.items():
        yield patched(name=name, content_type=JSON_PATCH, make=partial(_as_json_patch, make))
        yield patched(name=name, content_type=MERGE_PATCH, make=make)
        yield patched(name=name, content_type=STRATEGIC_PATCH, make=make)
        yield applied(name=name, make=partial(_as_configuration, make))
    yield patched(
        name="conditions", content_type=STRATEGIC_PATCH, make=lambda: _conditions(40_000), path=f"{VICTIM}/status"
    )
    yield applied(
        name="conditions",
        make=lambda: cluster(_conditions(40_000)[1:-1]),
        path=f"{VICTIM}/status?fieldManager=m&force=true",
    )
    yield patched(name="keys to retain", content_type=STRATEGIC_PATCH, make=_retained)


def _as_json_patch(make: Make) -> bytes:
    """The first member of a merge patch as one operation."""
    merge_patch = make()
    return b'[{"op":"add","path":"/spec","value":' + merge_patch[merge_patch.index(b":") + 1 : -1] + b"}]"


def _as_configuration(make: Make) -> bytes:
    """A merge patch as what is applied."""
    return cluster(make()[1:-1])


def _deep_paths() -> bytes:
    deep = b'{"op":"add","path":"/metadata/annotations","value":' + b'{"a":' * 180 + b"1" + b"}" * 181
    operation = b'{"op":"add","path":"/metadata/annotations' + b"/a" * 179 + b'","value":1}'
    return listed(b"[" + deep + b",", operation, b"]", count=(LIMIT - 1000) // (len(operation) + 1))


def _conditions(count: int) -> bytes:
    return listed(b'{"status":{"conditions":[', lambda n: b'{"type":"t%d","status":"True"}' % n, b"]}}", count=count)


def _retained() -> bytes:
    keys = listed(b'{"metadata":{"annotations":{"$retainKeys":[', lambda n: b'"a%d"' % n, b"],", count=60_000)
    return listed(keys, lambda n: b'"a%d":"b"' % n, b"}}}", count=60_000)


# Bodies that the audit log has to look at


def _audited_cases() -> Iterator[Case]:
    annotations = b'{"metadata":{"annotations":{'
    bodies: dict[str, Make] = {
        "words as before credentials": lambda: annotations + b'"a":"' + b"token: " * 140_000 + b'"}}}',
        "a word before backslashes": lambda: annotations + b'"a":"token' + b"\\\\" * 450_000 + b'"}}}',
        "what begins like tokens": lambda: annotations + b'"a":"' + b"eyJhbGciOi" * 100_000 + b'"}}}',
        "many texts": lambda: listed(annotations, lambda n: b'"a%d":"token"' % n, b"}}}", count=60_000),
    }
    for name, make in bodies.items():
        yield Case(name=f"{name} (audited)", content_type=JSON, make=make, is_audited=True)
    aliases = {
        "700 aliases of a text of 50 KB": lambda: _aliases(700, 50_000),
        "60 aliases of what begins like tokens": lambda: _aliases(60, 50_000, b"eyJ"),
    }
    for name, make in aliases.items():
        yield Case(name=f"{name} (audited)", content_type=YAML, make=make, is_audited=True)
