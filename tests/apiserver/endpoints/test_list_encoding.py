"""Lists that are encoded while they are sent: their content, and that their length is right."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import time
from typing import Any

import orjson
import pytest
import yaml

from clusterregistry.apimachinery.codecs import json_codec, yaml_codec
from clusterregistry.apiserver.endpoints import list_encoding
from clusterregistry.apiserver.endpoints.encoding import list_response
from clusterregistry.apiserver.endpoints.list_encoding import pretty_list, yaml_list
from clusterregistry.apiserver.endpoints.negotiation import METADATA_LIST, TABLE, YAML, Representation
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.endpoints.table import Rows
from clusterregistry.apiserver.registry.list import Listed
from clusterregistry.apiserver.registry.rbac.resources import cluster_role_binding_resource, cluster_role_resource
from clusterregistry.apiserver.registry.resource import Column
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import labels_of, presented, to_stored
from clusterregistry.registry.cluster import cluster_resource
from tests.apimachinery.codecs.memory import little_memory

STORED = cluster_resource("off")
OTHER_VERSION = dataclasses.replace(STORED.stored_as, name="v2")
PLAIN = Representation()
FORMS = [
    (PLAIN, ""),
    (Representation(kind=METADATA_LIST, version="v1"), ""),
    (Representation(kind=TABLE, version="v1"), "Metadata"),
    (Representation(kind=TABLE, version="v1beta1"), "Object"),
    (Representation(kind=TABLE, version="v1"), "None"),
]


def scope(*, stored: bool = True) -> RequestScope:
    """All that lists need of one."""
    version = STORED.stored_as if stored else OTHER_VERSION
    unused: Any = None
    return RequestScope(
        resource=STORED, version=version, structural=unused, store=unused, broadcaster=unused, field_managers={}
    )


def cluster(number: int, *, note: str = "") -> KeyValue:
    metadata = {
        "name": f"c{number}",
        "creationTimestamp": f"2020-01-01T00:{number % 60:02}:00Z" if number else "long ago",
        "annotations": {"note": note, "metadata": '{"labels":{}}'},
        "uid": f"u-{number}",
    }
    obj = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "Cluster", "metadata": metadata, "spec": {}}
    return presented(KeyValue(f"/clusters/c{number}", to_stored(obj), 10**number if number < 9 else number))


def clusters(count: int) -> list[KeyValue]:
    """Small ones, large ones and one that is larger than a piece."""
    return [cluster(n, note="x" * (200_000 if n == 3 else n)) for n in range(1, count + 1)]


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize(("representation", "include"), FORMS)
async def test_a_list_is_as_long_as_it_says(representation: Representation, include: str, *, stored: bool) -> None:
    for count in (0, 1, 2, 256, 257, 600):
        answer = await list_response(scope(stored=stored), Listed(clusters(count), 9), representation, include=include)
        pieces = list(answer.body)
        assert answer.length == sum(map(len, pieces))
        found = orjson.loads(b"".join(pieces))
        assert len(found["rows" if representation.kind == TABLE else "items"]) == count


async def test_the_pieces_of_a_list_hold_its_objects_in_order() -> None:
    items = clusters(600)
    answer = await list_response(scope(), Listed(items, 9), PLAIN)
    pieces = list(answer.body)
    versions = [item["metadata"]["resourceVersion"] for item in orjson.loads(b"".join(pieces))["items"]]
    assert versions == [str(item.revision) for item in items]
    assert len(pieces) > 3


async def test_a_list_can_be_gone_through_again() -> None:
    answer = await list_response(scope(), Listed(clusters(300), 9), PLAIN)
    assert list(answer.body) == list(answer.body)


@pytest.mark.parametrize("representation", [form for form, _ in FORMS if form.kind])
async def test_metadata_is_the_same_whether_it_is_decoded_or_not(representation: Representation) -> None:
    """Objects of the stored version are not decoded for it, those of others are."""

    async def items(*, stored: bool) -> Any:
        answer = await list_response(scope(stored=stored), Listed(clusters(5), 9), representation)
        return orjson.loads(b"".join(answer.body))

    assert await items(stored=True) == await items(stored=False)


async def test_ages_are_those_of_each_object() -> None:
    now = Representation(kind=TABLE, version="v1")
    answer = await list_response(scope(), Listed([cluster(0), cluster(1)], 9), now)
    unknown, old = (row["cells"][-1] for row in orjson.loads(b"".join(answer.body))["rows"])
    assert unknown == "<unknown>"
    assert old.endswith(("y", "d"))


BINDINGS = cluster_role_binding_resource()
BINDING: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"creationTimestamp": "2020-01-01T00:00:00Z", "name": "a", "uid": "u"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "viewers"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
}


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
@pytest.mark.parametrize("count", [1, 300])
async def test_cells_behind_the_age_are_in_their_rows(count: int, include: str, *, stored: bool) -> None:
    version = BINDINGS.versions[0]
    unused: Any = None
    bindings = RequestScope(
        resource=BINDINGS,
        version=version if stored else dataclasses.replace(version, name="v2"),
        structural=unused,
        store=unused,
        broadcaster=unused,
        field_managers={},
    )
    items = [presented(KeyValue("/bindings/a", to_stored(BINDING), 7))] * count
    answer = await list_response(bindings, Listed(items, 9), Representation(kind=TABLE, version="v1"), include=include)
    pieces = list(answer.body)
    assert answer.length == sum(map(len, pieces))
    for row in orjson.loads(b"".join(pieces))["rows"]:
        name, role, age, *others = row["cells"]
        assert (name, role, others) == ("a", "ClusterRole/viewers", ["jane", "", ""])
        assert age.endswith(("y", "d"))


async def test_a_table_keeps_its_size_while_another_version_is_listed() -> None:
    """The rows that are kept with objects are those of the last version that somebody asked for."""
    found, table = clusters(600), Representation(kind=TABLE, version="v1")
    other = dataclasses.replace(STORED.stored_as, name="v2", columns=STORED.stored_as.columns[:2])
    body = b"".join((await list_response(scope(), Listed(found, 9), table)).body)
    answer = await list_response(scope(), Listed(found, 9), table)
    between = await list_response(dataclasses.replace(scope(), version=other), Listed(found, 9), table)
    for each in (answer, between):
        assert each.length == len(b"".join(each.body))
    assert {len(row["cells"]) for row in orjson.loads(b"".join(between.body))["rows"]} == {2}
    assert b"".join(answer.body) == body


V1BETA1, _ = STORED.versions


def observed(number: int, **status: str) -> KeyValue:
    """The object of ``clusters``, with a status."""
    obj = orjson.loads(cluster(number).value)
    del obj["metadata"]["resourceVersion"]
    return presented(KeyValue(f"/clusters/c{number}", to_stored({**obj, "status": status}), 7))


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
async def test_a_table_with_two_ages_shows_both_whichever_is_missing(include: str) -> None:
    seen = "2021-06-01T00:00:00Z"
    found = [observed(1, observedAt=seen), observed(2), observed(0, observedAt="some day"), observed(3, state="Ready")]
    beta = dataclasses.replace(scope(), version=V1BETA1)
    for _ in range(2):  # made, and kept
        answer = await list_response(beta, Listed(found, 9), Representation(kind=TABLE, version="v1"), include=include)
        body = b"".join(answer.body)
        assert answer.length == len(body)
        cells = [row["cells"] for row in orjson.loads(body)["rows"]]
        assert [len(each) for each in cells] == [7] * 4
        ages = [each[5:] for each in cells]
        assert [each[0] is None for each in ages] == [False, True, False, True]
        assert ages[0][0] < ages[0][1] or ages[0][0].endswith("d")
        assert ages[2] == ["<unknown>", "<unknown>"]
        assert cells[3][1] == "Ready"


async def test_ages_at_any_place_are_filled_in() -> None:
    """Wherever ages stand among the columns, and whichever have no value."""
    now = time.time()
    for places in itertools.chain.from_iterable(itertools.combinations(range(4), size) for size in range(5)):
        for present in itertools.product([True, False], repeat=len(places)):
            given = dict(zip(places, present, strict=True))
            values = ["2020-01-01T00:00:00Z" if given.get(at) else None if at in given else at for at in range(4)]
            columns = [
                Column(name="x", type="string", description="", cell=lambda _, value=value: value, is_age=at in given)  # type: ignore[misc]
                for at, value in enumerate(values)
            ]
            version = dataclasses.replace(STORED.stored_as, columns=columns)
            rows = Rows(dataclasses.replace(scope(), version=version), include="None", version="v1", now=now)
            kv = cluster(1)
            size = rows.measure([kv])
            row = rows.join([kv], 0, 1).removeprefix(b",")
            assert size == len(row)
            shown = orjson.loads(row)["cells"]
            assert [type(each) for each in shown] == [str if given.get(at) else type(values[at]) for at in range(4)]


async def test_labels_that_were_read_stay_with_the_row_of_their_object() -> None:
    kv = presented(KeyValue("/bindings/a", to_stored(with_labels(BINDING)), 7))
    labels = labels_of(kv)
    await list_response(scope(), Listed([kv], 9), Representation(kind=TABLE, version="v1"))
    assert labels_of(kv) is labels


def with_labels(obj: dict[str, Any]) -> dict[str, Any]:
    return obj | {"metadata": obj["metadata"] | {"labels": {"a": "b"}}}


@pytest.mark.parametrize(("seconds", "most", "least"), [(-1.0, 17, 15), (3600.0, 1, 0)])
async def test_others_have_a_turn_once_measuring_has_taken_its_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, most: int, least: int
) -> None:
    monkeypatch.setattr(list_encoding, "_TURN_SECONDS", seconds)
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    others = asyncio.create_task(take_turns())
    await list_response(scope(), Listed(clusters(1000), 9), PLAIN)
    others.cancel()
    assert least <= turns <= most


ROLES = cluster_role_resource()
ROLE: dict[str, Any] = {
    "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"kind": "ClusterRole", "metadata": "x"}}]},
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {
        "annotations": {"note": '"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{'},
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "name": "a",
        "resourceVersion": "7",
        "uid": "u",
    },
    "rules": None,
}
LISTED_ROLE = {name: value for name, value in ROLE.items() if name not in ("apiVersion", "kind")}


def role_scope(*, stored: bool) -> RequestScope:
    version = dataclasses.replace(ROLES.versions[0], name="v2", from_storage=in_version_2)
    unused: Any = None
    return RequestScope(
        resource=ROLES,
        version=ROLES.versions[0] if stored else version,
        structural=unused,
        store=unused,
        broadcaster=unused,
        field_managers={},
    )


def in_version_2(obj: dict[str, Any]) -> dict[str, Any]:
    return obj | {"apiVersion": "rbac.authorization.k8s.io/v2"}


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("representation", [PLAIN, Representation(pretty=True)])
async def test_items_of_native_kinds_do_not_repeat_their_type(representation: Representation, *, stored: bool) -> None:
    items = [presented(KeyValue("/clusterroles/a", to_stored(ROLE), 7))] * 300
    answer = await list_response(role_scope(stored=stored), Listed(items, 9), representation)
    pieces = list(answer.body)
    assert answer.length == sum(map(len, pieces))
    found = orjson.loads(b"".join(pieces))
    assert (found["apiVersion"], found["kind"]) == (role_scope(stored=stored).group_version, "ClusterRoleList")
    assert found["items"] == [LISTED_ROLE] * 300


async def test_rows_bring_native_objects_along_with_their_type() -> None:
    items = [presented(KeyValue("/clusterroles/a", to_stored(ROLE), 7))]
    table = Representation(kind=TABLE, version="v1")
    answer = await list_response(role_scope(stored=True), Listed(items, 9), table, include="Object")
    assert orjson.loads(b"".join(answer.body))["rows"][0]["object"] == ROLE


@pytest.mark.parametrize("representation", [Representation(media_type=YAML), Representation(pretty=True)])
async def test_long_lists_are_written_beside_the_loop(representation: Representation) -> None:
    items = [cluster(n, note="x\n" * 20_000) for n in range(1, 40)]
    loop, whole = time.thread_time(), time.process_time()
    answer = await list_response(scope(), Listed(items=items, revision=1), representation)
    loop, whole = time.thread_time() - loop, time.process_time() - whole
    assert [item["metadata"]["name"] for item in yaml.load(b"".join(answer.body), yaml.CSafeLoader)["items"]] == [
        f"c{n}" for n in range(1, 40)
    ]
    assert loop < whole / 2


ITEMS: list[Any] = [
    {"metadata": {"name": "a", "labels": {}}, "spec": {"list": [1, [2, [3]], {"b": []}], "text": "a\nb: c\n"}},
    {"k" * 1200: {"x": 1}, "": None, "empty": {}, "quoted: key": "- a", "z": "\u2028"},
    {},
]


@pytest.mark.parametrize(("key", "count"), [("items", 1), ("items", 3), ("rows", 2)])
def test_the_text_is_that_of_the_whole_list(key: str, count: int) -> None:
    frame: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "metadata": {"a": [{"b": 1}]}, key: []}
    whole = {**frame, key: ITEMS[:count]}
    items = [orjson.dumps(item) for item in ITEMS[:count]]
    assert yaml_list(orjson.dumps(frame), iter(items)) == yaml_codec.encode(whole)
    assert pretty_list(orjson.dumps(frame), iter(items)) == json_codec.encode_pretty(whole)


@pytest.mark.parametrize("write", [yaml_list, pretty_list])
def test_only_one_item_is_read_at_a_time(write: Any) -> None:
    item = b'{"a":[' + b"{}," * 20_000 + b"{}]}"
    with little_memory(30_000_000):
        assert len(write(b'{"items":[]}', (item for _ in range(20)))) > 20 * len(item)
