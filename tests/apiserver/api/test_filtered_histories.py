"""A client that lists, watches, is disconnected and resumes, while objects and its rights change, is never wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiserver.api.clients import NOBODY, Watch
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster, path_of
from tests.apiserver.api.rbac_objects import rule
from tests.apiserver.api.rights import Rights

NAMES = "abcdef"
SENTINEL = "sentinel"
STEPS = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("histories")).running() as started:
        yield started


class Informer:
    """Does what clients do: list, watch from there, resume from the last version seen, list again on a 410."""

    def __init__(self, client: InProcessClient, **query: str) -> None:
        self._client, self._query = client, query
        self.knows: dict[str, Any] = {}
        self._version = ""
        self.lists = 0
        self._list()

    def _list(self) -> None:
        found = self._client.get(CLUSTERS, headers=NOBODY, **self._query).expect(200)
        self.knows = {item["metadata"]["name"]: item for item in found["items"]}
        self._version = found["metadata"]["resourceVersion"]
        self.lists += 1
        self._open()

    def _open(self) -> None:
        query = {"resourceVersion": self._version, "allowWatchBookmarks": "true", **self._query}
        self._watch: Watch = self._client.watch(CLUSTERS, headers=NOBODY, **query)
        assert self._watch.status == 200

    def cut_off(self) -> None:
        self._watch.close()
        self._open()

    def receive(self) -> None:
        line = self._watch.line()
        if not line:  # the watch of everything ends with the right to it
            self.cut_off()
            return
        event = json.loads(line)
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            assert obj["code"] == 410
            self._watch.close()
            self._list()
            return
        name = obj["metadata"].get("name", "")
        if kind == "ADDED":
            assert name not in self.knows
        elif kind != "BOOKMARK":
            assert name in self.knows
        if kind == "DELETED":
            del self.knows[name]
        elif kind != "BOOKMARK":
            self.knows[name] = obj
        self._version = obj["metadata"]["resourceVersion"]

    def hear_until(self, sentinel: dict[str, Any]) -> None:
        while self.knows.get(SENTINEL) != sentinel:
            self.receive()

    def close(self) -> None:
        self._watch.close()


def write(client: InProcessClient, choose: random.Random, number: int) -> None:
    name = choose.choice(NAMES)
    if choose.random() < 0.3:
        client.delete(path_of(name))
    else:
        labels = {"x": choose.choice("01")}
        client.put(path_of(name), cluster(name, f"provider-{number}", labels=labels))


def change_rights(rights: Rights, choose: random.Random) -> None:
    names = [name for name in NAMES if choose.random() < 0.5]
    more = [rule("list", "watch")] if choose.random() < 0.15 else []
    rights.has("nobody", rule("get", names=[*names, SENTINEL]), *more)


@pytest.mark.parametrize("query", [{}, {"labelSelector": "x=1"}])
@pytest.mark.parametrize("seed", range(3))
def test_a_client_always_comes_to_know_what_it_may_see(server: InProcess, seed: int, query: dict[str, str]) -> None:
    client, rights, choose = server.client(), Rights(server), random.Random(seed)
    rights.sees("nobody", SENTINEL)
    informer = Informer(client, **query)
    for number in range(STEPS):
        what = choose.random()
        if what < 0.6:
            write(client, choose, number)
        elif what < 0.8:
            change_rights(rights, choose)
        elif what < 0.9:
            informer.cut_off()
        else:
            # All events up to here must add up to the current list.
            mark = client.put(path_of(SENTINEL), cluster(SENTINEL, str(number), labels={"x": "1"})).json
            informer.hear_until(mark)
            found = client.get(CLUSTERS, headers=NOBODY, **query).expect(200)["items"]
            assert informer.knows == {item["metadata"]["name"]: item for item in found}
    informer.close()
    assert informer.lists > 1
