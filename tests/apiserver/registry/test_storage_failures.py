"""The answers of a running server whose storage fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver import resource_storage
from clusterregistry.apiserver.storage.errors import (
    CorruptObject,
    KeyExists,
    KeyNotFound,
    RevisionCompacted,
    RevisionConflict,
    RevisionInFuture,
    StorageError,
    StorageUnavailable,
    ValueTooLarge,
)
from clusterregistry.apiserver.storage.interface import Storage
from tests.apiserver.api.clients import Answer
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import APPLY_PATCH, CLUSTERS, HOLD, cluster, path_of

ERRORS: list[StorageError] = [
    StorageError("odd"),
    KeyExists("/k"),
    KeyNotFound("/k"),
    RevisionConflict("/k", expected=1, actual=2),
    RevisionCompacted(1, compacted=2),
    RevisionInFuture(9, current=2),
    ValueTooLarge("/k", size=9, remedy=""),
    StorageUnavailable("the disk is full"),
    CorruptObject("/k", revision=3, reason="it is not JSON"),
]
WRITES: dict[str, Callable[[InProcessClient], Answer]] = {
    "create": lambda client: client.post(CLUSTERS, cluster("new")),
    "put that creates": lambda client: client.put(path_of("new"), cluster("new")),
    "apply that creates": lambda client: client.patch(
        path_of("new"), cluster("new"), kind=APPLY_PATCH, fieldManager="tests"
    ),
    "put": lambda client: client.put(path_of("a"), cluster("a", "gce")),
    "patch": lambda client: client.patch(path_of("a"), {"metadata": {"labels": {"x": "1"}}}),
    "patch status": lambda client: client.patch(path_of("a") + "/status", {"status": {"nodes": {"total": 1}}}),
    "delete": lambda client: client.delete(path_of("a")),
    "delete that marks": lambda client: client.delete(path_of("held")),
    "deletecollection": lambda client: client.delete(CLUSTERS),
}


class Failing:
    """A storage that raises ``error`` the next ``times`` times."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self.error: StorageError | None = None
        self.times = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("create", "update", "delete", "history", "list", "get"):
            return found

        async def perhaps(*arguments: Any, **keywords: Any) -> Any:
            if self.error is not None and self.times:
                self.times -= 1
                raise self.error
            return await found(*arguments, **keywords)

        return perhaps


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[InProcessClient, Failing]]:
    made: list[Failing] = []
    real = resource_storage.open_storage

    async def open_storage(*arguments: Any, **keywords: Any) -> Any:
        made.append(Failing(await real(*arguments, **keywords)))
        return made[0]

    monkeypatch.setattr(resource_storage, "open_storage", open_storage)
    with InProcess(tmp_path).running() as server:
        client = server.client()
        recreate(client)
        yield client, made[0]


def recreate(client: InProcessClient) -> None:
    """Leaves two objects: ``a``, and ``held`` with a finalizer."""
    for name in ("a", "held", "new"):
        client.patch(path_of(name), {"metadata": {"finalizers": None}})
        client.delete(path_of(name))
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.post(CLUSTERS, cluster("held", finalizers=[HOLD])).expect(201)


@pytest.mark.parametrize("write", WRITES)
def test_no_storage_error_becomes_a_500(failing: tuple[InProcessClient, Failing], write: str) -> None:
    client, storage = failing
    for error in ERRORS:
        recreate(client)
        storage.error, storage.times = error, 1
        answer = WRITES[write](client)
        assert storage.times == 0
        assert answer.status != 500, (error, answer.body)
        if answer.status >= 400:
            assert answer.json["kind"] == "Status", error
        client.get(CLUSTERS).expect(200)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_with_an_unknown_outcome_does_not_ask_for_a_repetition(
    failing: tuple[InProcessClient, Failing], write: str
) -> None:
    client, storage = failing
    storage.error, storage.times = StorageUnavailable("the connection ended", outcome_unknown=True), 1000
    answer = WRITES[write](client)
    assert "retryAfterSeconds" not in answer.refused(503, "ServiceUnavailable")["details"]
    assert answer.header("Retry-After") is None
    storage.times = 0


@pytest.mark.parametrize("write", WRITES)
def test_a_storage_that_cannot_write_is_a_503(failing: tuple[InProcessClient, Failing], write: str) -> None:
    client, storage = failing
    before = client.get(CLUSTERS).expect(200)
    storage.error, storage.times = StorageUnavailable("the disk is full"), 1000
    answer = WRITES[write](client)
    assert answer.refused(503, "ServiceUnavailable")["details"]["retryAfterSeconds"] == 1
    assert answer.header("Retry-After") == "1"
    assert client.get(CLUSTERS).expect(200) == before
    storage.times = 0
    assert WRITES[write](client).status in (200, 201)


@pytest.mark.parametrize("write", ["put", "patch", "patch status", "delete", "delete that marks"])
@pytest.mark.parametrize("error", [RevisionConflict("/k", expected=1, actual=2), KeyNotFound("/k")])
def test_a_write_that_lost_a_race_is_repeated(
    failing: tuple[InProcessClient, Failing], write: str, error: StorageError
) -> None:
    client, storage = failing
    storage.error, storage.times = error, 3
    assert WRITES[write](client).status == 200


@pytest.mark.parametrize("write", ["put", "patch", "patch status", "delete", "delete that marks"])
def test_a_write_that_loses_every_race_ends(failing: tuple[InProcessClient, Failing], write: str) -> None:
    """An object that the cache has and the storage does not, such as after a restore, would be tried for ever."""
    client, storage = failing
    storage.error, storage.times = RevisionConflict("/k", expected=1, actual=2), 1_000_000
    refused = WRITES[write](client).refused(409, "Conflict")
    assert "try again" in refused["message"]
    assert storage.times > 990_000


@pytest.mark.parametrize("write", ["put that creates", "apply that creates"])
def test_a_create_that_finds_the_object_created_meanwhile_updates_it(
    failing: tuple[InProcessClient, Failing], write: str
) -> None:
    client, storage = failing
    storage.error, storage.times = KeyExists("/k"), 3
    assert WRITES[write](client).status == 201


def test_a_race_is_a_conflict_if_the_object_names_a_version(failing: tuple[InProcessClient, Failing]) -> None:
    client, storage = failing
    current = client.get(path_of("a")).expect(200)
    client.patch(path_of("a"), {"metadata": {"labels": {"x": "1"}}}).expect(200)
    storage.error, storage.times = RevisionConflict("/k", expected=1, actual=2), 1
    client.put(path_of("a"), current).refused(409, "Conflict")


def test_a_history_that_cannot_be_read_is_an_error_in_the_stream(failing: tuple[InProcessClient, Failing]) -> None:
    client, storage = failing
    version = client.get(path_of("a")).expect(200)["metadata"]["resourceVersion"]
    storage.error, storage.times = StorageUnavailable("the disk is gone"), 1000
    with client.watch(CLUSTERS, resourceVersion=int(version) - 1, timeoutSeconds=1) as watch:
        events = watch.rest()
    assert [event["type"] for event in events] in (["ERROR"], ["ADDED", "ADDED"])


def test_a_history_with_larger_pages_than_asked_for_is_sent_to_its_end(
    local: InProcessClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as after another program has changed several keys in one revision of etcd."""
    storage = type(local.server.storage)
    history = storage.history

    async def generous(self: Storage, prefix: str, *, after: int, limit: int) -> Any:
        return await history(self, prefix, after=after, limit=limit + 1)

    first = local.post(CLUSTERS, cluster("first")).expect(201)["metadata"]["resourceVersion"]
    made = [f"c{number:03}" for number in range(5)]
    for name in made:
        local.post(CLUSTERS, cluster(name)).expect(201)
    monkeypatch.setattr(storage, "history", generous)
    monkeypatch.setattr("clusterregistry.apiserver.endpoints.watch._HISTORY_PAGE", 1)
    with local.watch(CLUSTERS, resourceVersion=first, timeoutSeconds=1) as watch:
        assert [event["object"]["metadata"]["name"] for event in watch.rest()] == made


def test_an_existing_state_that_cannot_be_read_is_an_error_in_the_stream(
    local: InProcessClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> Any:
        raise StorageUnavailable("closed")

    local.post(CLUSTERS, cluster("a")).expect(201)
    with monkeypatch.context() as broken, contextlib.ExitStack() as stack:
        broken.setattr(type(local.server.storage), "list", fail)
        watch = stack.enter_context(local.watch(CLUSTERS, timeoutSeconds=1))
        (error,) = watch.rest()
    assert (error["type"], error["object"]["code"]) == ("ERROR", 503)


def test_the_health_shows_a_storage_that_cannot_write(failing: tuple[InProcessClient, Failing]) -> None:
    client, storage = failing
    storage.problem = lambda: "the disk is full"  # type: ignore[attr-defined]
    assert client.get("/readyz").status == 500
    assert client.get("/readyz/storage").status == 500
    assert client.get("/livez").status == 200
