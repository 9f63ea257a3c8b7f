"""How many instructions of the processor requests take, counted by valgrind: the same however busy the machine is.

    make bench-instructions
    make bench-instructions ARGS='create patch'   # some of the paths; table is a list of 100 objects as kubectl asks

The server runs in process, on SQLite and without sockets: its whole chain, and 16 requests under way at a time. Unlike
the operations of the performance tests this sees what happens inside of C functions, so it is what to look at when
something is to become cheaper; unlike time it knows nothing of caches, sockets and the disk, for which there is
``make bench``.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import objects
from benchmarks.objects import APPLY_PATCH, JSON, MERGE_PATCH, PATH, name_of
from clusterregistry.apiserver import server as app
from clusterregistry.apiserver.endpoints.request import Handler, Request
from clusterregistry.apiserver.http.response import Response, resolve
from clusterregistry.apiserver.options import load
from clusterregistry.registry.product import PRODUCT

PATHS = ("get", "table", "create", "patch", "put_status", "heartbeat", "apply", "renew")
CLUSTERS = 100
"""How many there are, and so the rows of the table."""

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

IN_FLIGHT = 16
WARM_UP, COUNTED = 160, 400
SETTLED = 5.0
"""Seconds in which the server's controllers look at all objects for the first time, which no request pays for."""

_COLLECTED = re.compile(r"Collected : (\d+)")
_numbers = itertools.count()


class _Call(Request):
    """A request whose body is there."""

    accept = JSON

    def __init__(self, method: str, path: str, body: bytes, content_type: str, query: bytes = b"") -> None:
        headers = {"authorization": "Bearer bench", "accept": self.accept, "user-agent": "bench"}
        if body:
            headers |= {"content-type": content_type, "content-length": str(len(body))}
        super().__init__(method=method, path=path, query_string=query, headers=headers)
        self._body = body

    def take_buffered_body(self) -> bytes:
        return self._body

    async def read_body(self) -> tuple[bytes, bool]:
        return self._body, False

    async def disconnected(self) -> None:
        await asyncio.Event().wait()


class _TableCall(_Call):
    accept = objects.AS_TABLE["accept"]


Stored = list[dict[str, Any]]
Prepare = Callable[[int, Stored], _Call]
"""The request of a number. The objects are as they were before the first one."""


def _written(method: str, path: str, body: object, content_type: str = JSON, query: bytes = b"") -> _Call:
    return _Call(method, path, json.dumps(body, separators=(",", ":")).encode(), content_type, query)


def _at(number: int) -> str:
    return f"{PATH}/{name_of(number % CLUSTERS)}"


def _get(number: int, _: Stored) -> _Call:
    return _Call("GET", _at(number), b"", "")


def _table(_number: int, _: Stored) -> _Call:
    return _TableCall("GET", PATH, b"", "")


def _create(number: int, _: Stored) -> _Call:
    return _written("POST", PATH, objects.cluster(CLUSTERS + number, f"new-{next(_numbers)}"))  # identities are unique


def _patch(number: int, _: Stored) -> _Call:
    return _written("PATCH", _at(number), {"metadata": {"labels": {"step": f"s{next(_numbers)}"}}}, MERGE_PATCH)


def _put_status(number: int, stored: Stored) -> _Call:
    found = stored[number % CLUSTERS]
    metadata = {name: value for name, value in found["metadata"].items() if name != "resourceVersion"}
    status = {**objects.status_of(number), "version": {"kubernetes": f"v{next(_numbers)}"}}
    return _written("PUT", f"{_at(number)}/status", {**found, "metadata": metadata, "status": status})


def _heartbeat(number: int, _: Stored) -> _Call:
    beat = {"name": "bench/beat", "value": str(next(_numbers))}
    status = {"properties": [beat], "conditions": [objects.ready_condition("2026-01-02T03:04:05Z")]}
    return _written("PATCH", f"{_at(number)}/status", {"status": status}, MERGE_PATCH)


def _apply(number: int, _: Stored) -> _Call:
    metadata = {"name": name_of(number % CLUSTERS), "labels": {"applied": f"a{next(_numbers)}"}}
    body = {"apiVersion": objects.API_VERSION, "kind": "Cluster", "metadata": metadata}
    return _written("PATCH", _at(number), body, APPLY_PATCH, b"fieldManager=bench-apply&force=true")


def _renew(number: int, leases: Stored) -> _Call:
    """A renewal names the version that it is based on, so that each lease is renewed once."""
    found = leases[number]
    renewed = {**found, "spec": {**found["spec"], "renewTime": "2026-01-02T03:04:15.000007Z"}}
    return _written("PUT", f"{LEASES}/{found['metadata']['name']}", renewed)


_CALLS = (_get, _table, _create, _patch, _put_status, _heartbeat, _apply, _renew)
PREPARED: dict[str, Prepare] = dict(zip(PATHS, _CALLS, strict=True))


async def _asked(handler: Handler, call: _Call) -> list[bytes]:
    """The pieces of the answer, as they are written to a socket."""
    answer = await resolve(handler(call))
    if not isinstance(answer, Response) or answer.status >= 400:  # noqa: PLR2004 - 4xx and 5xx
        raise SystemExit(f"{call.method} {call.path} was answered with {answer.status}")
    return list(answer.body)


async def _all_asked(handler: Handler, calls: Iterable[_Call]) -> None:
    rest = iter(calls)

    async def one_after_the_other() -> None:
        for call in rest:
            await _asked(handler, call)

    await asyncio.gather(*(one_after_the_other() for _ in range(IN_FLIGHT)))


async def _counted(path: str, directory: Path) -> None:
    """What runs under valgrind."""
    tokens = directory / "tokens.csv"
    tokens.write_text('bench,bench,1,"system:masters"\n')
    options = load(["--data-dir", str(directory), "--token-auth-file", str(tokens)], {}, options=PRODUCT.options)
    async with app.build(options, PRODUCT) as server:
        handler = server.handler
        stored = await (_made_leases if path == "renew" else _made_clusters)(handler)
        calls = [PREPARED[path](number, stored) for number in range(WARM_UP + COUNTED)]
        await _all_asked(handler, calls[:WARM_UP])
        await asyncio.sleep(SETTLED)
        _instrument("on")
        await _all_asked(handler, calls[WARM_UP:])
        _instrument("off")


async def _made_clusters(handler: Handler) -> Stored:
    stored: Stored = []
    for number in range(CLUSTERS):
        made = await _asked(handler, _written("POST", PATH, objects.cluster(number)))
        stored.append(json.loads(b"".join(made)))
        stored[number] = json.loads(b"".join(await _asked(handler, _put_status(number, stored))))
    return stored


async def _made_leases(handler: Handler) -> Stored:
    time = "2026-01-02T03:04:05.000007Z"
    spec = {
        "holderIdentity": "agent-1",
        "leaseDurationSeconds": 15,
        "acquireTime": time,
        "renewTime": time,
        "leaseTransitions": 0,
    }
    leases = ({"metadata": {"name": name_of(number)}, "spec": spec} for number in range(WARM_UP + COUNTED))
    return [json.loads(b"".join(await _asked(handler, _written("POST", LEASES, lease)))) for lease in leases]


def _instrument(state: str) -> None:
    subprocess.run(["callgrind_control", "-i", state, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)


def measured(path: str) -> int:
    """The instructions of one request on this path."""
    with tempfile.TemporaryDirectory(prefix="instructions-") as directory:
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
        valgrind += [f"--callgrind-out-file={directory}/callgrind.out"]
        command = [*valgrind, sys.executable, "-m", "tools.bench_instructions", "--inside", directory, path]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    found = _COLLECTED.search(ended.stderr)
    if ended.returncode or found is None:
        raise SystemExit(f"{path} could not be measured:\n{ended.stderr.strip()}")
    return int(found[1]) // COUNTED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH", help=f"of {', '.join(PATHS)}; without any: all")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if unknown := set(chosen.paths) - set(PATHS):
        parser.error(f"no such path: {', '.join(sorted(unknown))}; there are {', '.join(PATHS)}")
    if chosen.inside:
        uvloop.run(_counted(chosen.paths[0], chosen.inside))
    elif shutil.which("valgrind") is None:
        parser.exit(3, "valgrind is needed, such as Debian's package of that name\n")
    else:
        for path in chosen.paths or PATHS:
            print(f"{path:12} {measured(path):10,} instructions a request", flush=True)


if __name__ == "__main__":
    main()
