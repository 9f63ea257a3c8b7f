"""Values that the server did not write: another program's in etcd, and bytes that a disk has turned.

One of them must not reach any client, nor keep the others from being served. It is named, and can be deleted.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from clusterregistry.apiserver.storage.etcd import messages
from clusterregistry.apiserver.storage.interface import prefix_of
from clusterregistry.apiserver.storage.location import DATABASE
from tests.apiserver.api import in_process
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster, names, path_of
from tests.apiserver.api.rbac_objects import BINDINGS, NOBODY, ROLES, binding, role, rule
from tests.apiserver.server.programs import Program
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster

CLUSTER_KEYS = prefix_of("clusterregistry.k8s.io", "clusters")
ROLE_KEYS = prefix_of("rbac.authorization.k8s.io", "clusterroles")
BINDING_KEYS = prefix_of("rbac.authorization.k8s.io", "clusterrolebindings")
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}

FOREIGN = [
    b"garbage",
    b'{"kind":"Cluster"}',
    b"[]",
    b'{"apiVersion":"clusterregistry.k8s.io/v1alpha1","kind":"Cluster","metadata":{"name":"another","uid":"u"}}',
    b'{\n"metadata":{\n"labels":{"env":{}},"uid":"u"}}',
    b"\xff\xfe\n",
]

_numbers = count()

Replica = Callable[[], InProcessClient]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd")) as etcd:
        yield etcd


@pytest.fixture
def replica(etcd: EtcdCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replica]:
    monkeypatch.setattr(in_process, "PATIENCE", 60.0)
    prefix = f"/registry/foreign/{next(_numbers)}"
    with ExitStack() as stack:

        def start() -> InProcessClient:
            flags = (f"--etcd-servers={etcd.endpoints[0]}", f"--etcd-prefix={prefix}")
            server = InProcess(tmp_path / f"replica-{next(_numbers)}", *flags)
            return stack.enter_context(server.running()).client()

        yield start


def scribble(client: InProcessClient, changes: dict[str, bytes | None]) -> None:
    """Writes to etcd past all servers, in one transaction; None deletes."""
    storage: Any = client.server.storage
    etcd = storage._backend
    done = [
        {"request_delete_range": {"key": etcd._range.key(key)}}
        if value is None
        else {"request_put": {"key": etcd._range.key(key), "value": value}}
        for key, value in changes.items()
    ]
    client.server.run(etcd._client.call("txn", messages.TxnRequest(success=done)))


def eventually(happens: Callable[[], bool]) -> None:
    until = time.monotonic() + 30.0
    while not happens():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.02)


def selected(client: InProcessClient, selector: str) -> list[str]:
    return names(client.get(CLUSTERS, labelSelector=selector).expect(200))


def set_aside(client: InProcessClient) -> int:
    counted = client.get("/metrics").body.decode()
    found = re.findall(r'clusterregistry_storage_corrupt_objects\{resource="[^"]+"\} (\S+)', counted)
    assert found
    return int(sum(map(float, found)))


def has_set_aside(client: InProcessClient, number: int) -> bool:
    return set_aside(client) == number


@NEEDS_ETCD
@pytest.mark.parametrize("value", FOREIGN)
def test_a_foreign_value_reaches_no_client_and_what_happened_with_it_does(
    replica: Replica, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    client = replica()
    for name in ("deleted", "kept", "overwritten"):
        client.post(CLUSTERS, cluster(name, labels={"env": "prod"})).expect(201)
    assert selected(client, "env=prod") == ["deleted", "kept", "overwritten"]
    begun = client.get(CLUSTERS).expect(200)["metadata"]["resourceVersion"]
    with (
        client.watch(CLUSTERS, resourceVersion=begun) as whole,
        client.watch(CLUSTERS, resourceVersion=begun, labelSelector="env=prod") as chosen,
    ):
        with caplog.at_level(logging.ERROR):
            changes = {"bad": value, "deleted": None, "overwritten": value}
            scribble(client, {CLUSTER_KEYS + name: each for name, each in changes.items()})
            eventually(lambda: set_aside(client) == 2)
        assert f"what is stored under '{CLUSTER_KEYS}bad'" in caplog.text
        assert f"what is stored under '{CLUSTER_KEYS}overwritten'" in caplog.text
        client.post(CLUSTERS, cluster("later", labels={"env": "prod"})).expect(201)
        for watch in (whole, chosen):
            events = sorted((event["type"], event["object"]["metadata"]["name"]) for event in watch.take(3))
            assert events == [("ADDED", "later"), ("DELETED", "deleted"), ("DELETED", "overwritten")]
    # A client that resumes from before gets the same events.
    with client.watch(CLUSTERS, resourceVersion=begun) as resumed:
        events = sorted((event["type"], event["object"]["metadata"]["name"]) for event in resumed.take(3))
        assert events == [("ADDED", "later"), ("DELETED", "deleted"), ("DELETED", "overwritten")]
    second = replica()
    for each in (client, second):
        assert names(each.get(CLUSTERS).expect(200)) == ["kept", "later"]
        assert selected(each, "env=prod") == ["kept", "later"]
        assert len(each.get(CLUSTERS, headers=TABLE).expect(200)["rows"]) == 2
        assert names(each.get(CLUSTERS, headers=PARTIAL).expect(200)) == ["kept", "later"]
        page = each.get(CLUSTERS, limit=1).expect(200)
        rest = each.get(CLUSTERS, limit=5, **{"continue": page["metadata"]["continue"]}).expect(200)
        assert names(page) + names(rest) == ["kept", "later"]


@NEEDS_ETCD
def test_it_can_be_deleted_and_nothing_else(replica: Replica) -> None:
    client, second = replica(), replica()
    scribble(client, {f"{CLUSTER_KEYS}bad": b"garbage"})
    for each in (client, second):
        eventually(partial(has_set_aside, each, 1))
    for query in ({}, {"resourceVersion": "0"}):
        refused = client.get(path_of("bad"), **query).refused(409, "StorageReadError")
        assert "it is not JSON" in refused["message"]
        assert "delete it" in refused["message"]
    client.put(path_of("bad"), cluster("bad")).refused(409, "StorageReadError")
    client.patch(path_of("bad"), {"metadata": {"labels": {"a": "b"}}}).refused(409, "StorageReadError")
    taken = client.post(CLUSTERS, cluster("bad")).refused(409, "AlreadyExists")
    assert "delete it first" in taken["message"]
    client.post(CLUSTERS, cluster("bad"), dryRun="All").refused(409, "AlreadyExists")
    client.delete(path_of("bad"), headers=NOBODY).refused(403, "Forbidden")
    client.delete(path_of("bad"), {"preconditions": {"uid": "x"}}).refused(409, "Conflict")
    client.delete(path_of("bad"), dryRun="All").expect(200)
    # kube-apiserver asks for this; here it changes nothing.
    ignoring = {"ignoreStoreReadErrorWithClusterBreakingPotential": True, "dryRun": ["All"]}
    client.delete(path_of("bad"), ignoring).expect(200)
    assert set_aside(client) == 1
    assert client.delete(path_of("bad")).expect(200)["status"] == "Success"
    client.get(path_of("bad")).refused(404, "NotFound")
    for each in (client, second):
        eventually(partial(has_set_aside, each, 0))
    second.post(CLUSTERS, cluster("bad")).expect(201)
    assert names(client.get(CLUSTERS).expect(200)) == ["bad"]


@NEEDS_ETCD
def test_readyz_counts_it_for_everybody_names_it_for_those_who_may_ask_and_stays_ready(replica: Replica) -> None:
    client = replica()
    assert "[+]stored-objects ok\n" in client.get("/readyz", verbose="").body.decode()
    scribble(client, {f"{CLUSTER_KEYS}secret-name": b"garbage"})
    eventually(lambda: set_aside(client) == 1)
    assert client.get("/readyz").body == b"ok"
    shown = client.get("/readyz", verbose="").body.decode()
    assert "[+]stored-objects ok: 1 set aside\n" in shown
    assert "secret-name" not in shown
    named = client.get("/readyz/stored-objects").body.decode()
    assert named.startswith("ok\n")
    assert f"{CLUSTER_KEYS}secret-name: it is not JSON" in named


@NEEDS_ETCD
def test_a_good_object_that_another_program_wrote_is_served(replica: Replica) -> None:
    client = replica()
    made = client.post(CLUSTERS, cluster("a", labels={"env": "prod"})).expect(201)
    del made["metadata"]["resourceVersion"]
    made["metadata"]["name"] = "b"
    scribble(client, {f"{CLUSTER_KEYS}b": orjson.dumps(made, option=orjson.OPT_INDENT_2)})
    eventually(lambda: names(client.get(CLUSTERS).expect(200)) == ["a", "b"])
    assert selected(client, "env=prod") == ["a", "b"]
    found = client.get(path_of("b")).expect(200)
    assert found["metadata"].pop("resourceVersion")
    assert found == made
    client.patch(path_of("b"), {"metadata": {"labels": {"env": "dev"}}}).expect(200)


METADATA = {"name": "bad", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z"}
BAD_RBAC = [
    b"garbage",
    b"{}",
    orjson.dumps(role("bad") | {"metadata": METADATA, "rules": [5]}),
    orjson.dumps(binding("bad", "reader") | {"metadata": METADATA, "roleRef": 7, "subjects": ["x"]}),
]


@NEEDS_ETCD
@pytest.mark.parametrize("value", BAD_RBAC)
def test_a_bad_role_or_binding_keeps_nobody_from_starting(
    replica: Replica, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    first = replica()
    first.post(CLUSTERS, cluster("a")).expect(201)
    first.post(ROLES, role("reader", rule("get"))).expect(201)
    first.post(BINDINGS, binding("reader", "reader", User="nobody")).expect(201)
    first.get(path_of("a"), headers=NOBODY).expect(200)
    scribble(first, {f"{ROLE_KEYS}bad": value, f"{BINDING_KEYS}bad": value, f"{ROLE_KEYS}view": value})
    with caplog.at_level(logging.ERROR):
        second = replica()
    assert f"{ROLE_KEYS}bad" in caplog.text
    assert f"{BINDING_KEYS}bad" in caplog.text
    for each in (first, second):
        each.get(path_of("a"), headers=NOBODY).expect(200)
        each.get(f"{ROLES}/bad").refused(409, "StorageReadError")
        assert "reader" in names(each.get(ROLES).expect(200))
        assert "bad" not in names(each.get(BINDINGS).expect(200))
    # What was a default role is made again once it is out of the way.
    second.delete(f"{ROLES}/view").expect(200)
    third = replica()
    assert third.get(f"{ROLES}/view").expect(200)["rules"]
    for path in (f"{ROLES}/bad", f"{BINDINGS}/bad"):
        third.delete(path).expect(200)
    assert set_aside(third) == 0


@NEEDS_ETCD
def test_a_default_role_or_binding_that_becomes_bad_counts_as_it_comes_with_the_server(replica: Replica) -> None:
    """As after a start. Without these the health checks, which come without a user, would end the server."""
    client = replica()
    anonymous = {"Authorization": None}
    client.post(BINDINGS, binding("ours", "view", User="nobody")).expect(201)
    client.get(CLUSTERS, headers=NOBODY).expect(200)
    name = "system:public-info-viewer"
    scribble(client, {f"{BINDING_KEYS}{name}": b"bad", f"{ROLE_KEYS}{name}": b"bad", f"{BINDING_KEYS}ours": b"bad"})
    eventually(lambda: set_aside(client) == 3)
    assert client.get("/livez", headers=anonymous).status == 200
    assert client.get("/readyz", headers=anonymous).status == 200
    client.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")


def turn_a_byte(database: Path, key: str, at: bytes) -> None:
    """As a disk may: in the value of a key, at some text."""
    with closing(sqlite3.connect(database)) as connection, connection:
        (value,) = connection.execute("SELECT value FROM log WHERE key = ?", (key,)).fetchone()
        assert at in value
        turned = value.replace(at, bytes([at[0] ^ 0x80]) + at[1:], 1)
        connection.execute("UPDATE log SET value = ? WHERE key = ?", (turned, key))


@pytest.mark.parametrize("at", [b'"apiVersion"', b"Cluster", b"turned", b"\n", b"prod"])
def test_one_turned_byte_in_sqlite_costs_one_object(tmp_path: Path, at: bytes) -> None:
    program = Program(tmp_path)
    with program as started, started.client() as client:
        for name in ("kept", "turned"):
            client.post(CLUSTERS, cluster(name, labels={"env": "prod"})).expect(201)
    turn_a_byte(tmp_path / "data" / DATABASE, f"{CLUSTER_KEYS}turned", at)
    with program as started, started.client() as client:
        assert client.get("/readyz").status == 200
        assert names(client.get(CLUSTERS).expect(200)) == ["kept"]
        assert names(client.get(CLUSTERS, labelSelector="env=prod").expect(200)) == ["kept"]
        client.get(path_of("turned")).refused(409, "StorageReadError")
        assert f"{CLUSTER_KEYS}turned" in started.logged()
        with client.watch(CLUSTERS) as watch:
            assert [event["object"]["metadata"]["name"] for event in watch.take(1)] == ["kept"]
        client.delete(path_of("turned")).expect(200)
        client.post(CLUSTERS, cluster("turned")).expect(201)
        assert names(client.get(CLUSTERS).expect(200)) == ["kept", "turned"]
        assert "Traceback" not in started.logged()
