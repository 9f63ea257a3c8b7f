"""The ways through the server that have a budget."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse

from tests.apiserver.api.objects import APPLY_PATCH, CLUSTERS, GROUP_VERSION, MERGE_PATCH, path_of
from tests.system.performance.clients import RawClient
from tests.system.performance.objects import full_cluster, name_of
from tests.system.performance.operations import Operations
from tests.system.performance.servers import CountedServer

OBJECTS = 100
"""How many clusters there are."""

WATCHERS = 20
TABLE = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

Request = Callable[[], object]


def measured(server: CountedServer) -> dict[str, Operations]:
    """The operations of each path. Reads come first: writes add objects."""
    with server.connect() as client:
        found = {name: steady(server, request) for name, request in (reads(client) | writes(client)).items()}
    found["watch"] = delivery(server, watchers=WATCHERS)
    return found


def steady(server: CountedServer, request: Request) -> Operations:
    """After the first few, which fill caches."""
    for _ in range(4):
        request()
    return server.least(request)


def reads(client: RawClient) -> dict[str, Request]:
    return {
        "get": lambda: client.send("GET", path_of(name_of(0))),
        "list": lambda: client.send("GET", CLUSTERS),
        "list as a table": lambda: client.send("GET", CLUSTERS, None, TABLE),
    }


def writes(client: RawClient) -> dict[str, Request]:
    """The same request each time, but for one value that is new."""
    numbers = itertools.count(OBJECTS)
    subject = path_of(name_of(1))

    def new() -> str:
        return name_of(next(numbers))

    def changed(**content: object) -> dict[str, object]:
        return {"apiVersion": GROUP_VERSION, "kind": "Cluster", **content}

    return {
        "create": lambda: client.send("POST", CLUSTERS, full_cluster(new())),
        "merge patch": lambda: client.send(
            "PATCH", subject, {"metadata": {"labels": {"changed": new()}}}, f"Content-Type: {MERGE_PATCH}"
        ),
        "put status": lambda: client.send(
            "PUT",
            f"{subject}/status",
            changed(metadata={"name": name_of(1)}, status={"version": {"kubernetes": new()}}),
        ),
        "apply": lambda: client.send(
            "PATCH",
            f"{path_of(name_of(2))}?fieldManager=budgets",
            changed(metadata={"name": name_of(2), "labels": {"applied": new()}}),
            f"Content-Type: {APPLY_PATCH}",
        ),
    }


def delivery(server: CountedServer, *, watchers: int) -> Operations:
    """What one event costs for one watcher, beyond the write that made it."""
    with server.connect() as client:
        patch = writes(client)["merge patch"]
        unseen = steady(server, patch)
        with watching(server, watchers) as streams:
            seen = steady(server, lambda: [patch(), *(stream.readline() for stream in streams)])
    return seen.beyond(unseen, shares=watchers)


@contextmanager
def watching(server: CountedServer, count: int) -> Iterator[list[HTTPResponse]]:
    """So many clients that watch all clusters from now on."""
    with ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(count)]
        now = json.loads(clients[0].send("GET", f"{CLUSTERS}?limit=1"))["metadata"]["resourceVersion"]
        streams = [client.watch(f"{CLUSTERS}?watch=true&resourceVersion={now}") for client in clients]
        for stream in streams:
            stack.callback(stream.close)
        yield streams
