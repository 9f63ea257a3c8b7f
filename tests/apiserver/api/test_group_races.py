"""An object that leaves the user's set while a request is under way: the decision is on what is answered or written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.location import DATABASE
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.api.clients import ADMIN_TOKEN, NOBODY, Answer
from tests.apiserver.api.group_objects import SETS, TEAM, give, on_sets, team_set
from tests.apiserver.api.in_process import InProcess, InProcessClient, _Call
from tests.apiserver.api.objects import APPLY_PATCH, CLUSTERS, MERGE_PATCH, cluster, names, path_of

VERBS = ("get", "list", "create", "update", "patch", "delete", "deletecollection")
RED = {TEAM: "red"}
LEAVES = ("PATCH", path_of("r1"), {"metadata": {"labels": {TEAM: "blue"}}})
TOUCHED = ("PATCH", path_of("r1"), {"metadata": {"annotations": {"touched": "yes"}}})

Write = tuple[str, str, Any]


class Meanwhile:
    """Lets an administrator's write come first, the next time that a method is called."""

    def __init__(self, server: InProcess) -> None:
        self._server = server
        self.store: Store = server._stores["clusters"]

    def before(self, owner: Any, method: str, write: Write) -> None:
        real = getattr(owner, method)

        async def first(*arguments: Any, **keywords: Any) -> Any:
            delattr(owner, method)
            await self._write(*write)
            return await real(*arguments, **keywords)

        setattr(owner, method, first)

    async def _write(self, method: str, path: str, body: Any) -> None:
        content = json.dumps(body).encode()
        headers = [("authorization", f"Bearer {ADMIN_TOKEN}"), ("content-length", str(len(content)))]
        headers.append(("content-type", MERGE_PATCH if method == "PATCH" else "application/json"))
        call = _Call(method, path, headers=headers, body=content)
        await asyncio.create_task(call.made_to(self._server.server.handler))  # each request has a task of its own
        assert call.status in (200, 201)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[InProcess]:
    with InProcess(tmp_path).running() as started:
        client = started.client()
        for name, team in (("r1", "red"), ("r2", "red"), ("b1", "blue")):
            client.post(CLUSTERS, cluster(name, labels={TEAM: team})).expect(201)
        client.post(SETS, team_set("red")).expect(201)
        give(client, "nobody", on_sets(*VERBS, names=["red"]))
        yield started


@pytest.fixture
def meanwhile(server: InProcess) -> Meanwhile:
    return Meanwhile(server)


WRITES: dict[str, tuple[str, Callable[[InProcessClient], Answer]]] = {
    "put": (
        "update",
        lambda client: client.put(path_of("r1"), cluster("r1", "gcp", labels=RED), headers=NOBODY),
    ),
    "patch": (
        "update",
        lambda client: client.patch(path_of("r1"), {"spec": {"cloudProvider": {"name": "x"}}}, headers=NOBODY),
    ),
    "apply": (
        "update",
        lambda client: client.patch(
            path_of("r1"), cluster("r1", "gcp"), kind=APPLY_PATCH, headers=NOBODY, fieldManager="x", force="true"
        ),
    ),
    "delete": ("delete", lambda client: client.delete(path_of("r1"), headers=NOBODY)),
}


@pytest.mark.parametrize("write", WRITES)
def test_an_attempt_that_is_repeated_is_decided_again(server: InProcess, meanwhile: Meanwhile, write: str) -> None:
    method, send = WRITES[write]
    client, storage = server.client(), meanwhile.store.storage
    meanwhile.before(storage, method, LEAVES)
    send(client).refused(403, "Forbidden")
    found = client.get(path_of("r1")).expect(200)
    assert found["metadata"]["labels"] == {TEAM: "blue"}
    client.patch(path_of("r1"), {"metadata": {"labels": {TEAM: "red"}}}).expect(200)
    meanwhile.before(storage, method, TOUCHED)
    send(client).expect(200)


def test_a_get_is_decided_on_the_object_that_is_answered(server: InProcess, meanwhile: Meanwhile) -> None:
    client = server.client()
    meanwhile.before(meanwhile.store, "get", LEAVES)
    client.get(path_of("r1"), headers=NOBODY).refused(403, "Forbidden")
    client.get(path_of("r2"), headers=NOBODY).expect(200)


def test_a_collection_that_is_deleted_leaves_alone_what_has_left(server: InProcess, meanwhile: Meanwhile) -> None:
    client = server.client()
    meanwhile.before(meanwhile.store, "delete_all", LEAVES)
    assert names(client.delete(CLUSTERS, headers=NOBODY).expect(200)) == ["r1", "r2"]
    assert names(client.get(CLUSTERS).expect(200)) == ["b1", "r1"]


def test_a_put_that_would_create_is_no_right_to_an_object_that_came_first(
    server: InProcess, meanwhile: Meanwhile
) -> None:
    client = server.client()
    other = ("POST", CLUSTERS, cluster("new", labels={TEAM: "blue"}))
    meanwhile.before(meanwhile.store.storage, "create", other)
    client.put(path_of("new"), cluster("new", labels={TEAM: "red"}), headers=NOBODY).refused(403, "Forbidden")
    assert client.get(path_of("new")).expect(200)["metadata"]["labels"] == {TEAM: "blue"}


def test_an_object_that_cannot_be_read_is_in_no_set(tmp_path: Path) -> None:
    with InProcess(tmp_path).running() as started:
        client = started.client()
        for name in ("r1", "r2"):
            client.post(CLUSTERS, cluster(name, labels={TEAM: "red"})).expect(201)
        client.post(SETS, team_set("red")).expect(201)
        give(client, "nobody", on_sets(*VERBS, names=["red"]))
        key = f"{Meanwhile(started).store.prefix}r1"
    asyncio.run(damage(tmp_path / "data" / DATABASE, key))
    with InProcess(tmp_path).running() as started:
        client = started.client()
        client.get(path_of("r1")).refused(409, "StorageReadError")
        for answer in (client.get(path_of("r1"), headers=NOBODY), client.delete(path_of("r1"), headers=NOBODY)):
            answer.refused(403, "Forbidden")
        assert names(client.get(CLUSTERS, headers=NOBODY).expect(200)) == ["r2"]


async def damage(database: Path, key: str) -> None:
    storage = await SQLiteStorage.open(database)
    known = await storage.get(key)
    assert known is not None
    await storage.update(key, b"{", expected=known.revision)
    await storage.close()
