"""Counts the files that a request runs through, and how often it changes from one file to another.

    make file-switches
    make file-switches ARGS='--show get'    # the files in their order

The server runs in this process behind real TLS. A profile hook records which file of the package each call enters; a
switch is a call into another file than that of the call before it. Only the thread of the event loop counts, and each
request is sent a few times first, so that caches are warm.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import uvloop

import clusterregistry
from benchmarks.objects import API_VERSION, APPLY_PATCH, MERGE_PATCH, PATH, cluster
from clusterregistry.apiserver import server as app
from clusterregistry.apiserver.endpoints.request import ServedRequest
from clusterregistry.apiserver.http.server import HttpServer
from clusterregistry.apiserver.options import load
from clusterregistry.client.rest import Call
from clusterregistry.client.sync import SyncClient
from clusterregistry.registry.product import PRODUCT
from tests.apiserver.http.http_servers import contexts
from tests.apiserver.storage.etcd_servers import EtcdCluster
from tools.exchanges import access

_PACKAGE = str(Path(clusterregistry.__file__).parent) + "/"
_ROLES = "/apis/rbac.authorization.k8s.io/v1"
_TIMES = 5
_SETTLE_SECONDS = 0.05
"""What the server does just after it has answered counts too."""

PATHS = ("get", "apply", "filtered-watch", "etcd-write")


class Recorder:
    """A profile hook: the files of the package in the order in which calls enter them."""

    def __init__(self) -> None:
        self._files: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
            self._files.append(frame.f_code.co_filename[len(_PACKAGE) :])

    @property
    def visits(self) -> list[str]:
        """The files, without a file that follows itself."""
        return [name for name, _ in itertools.groupby(self._files)]


class MeasuredServer:
    """A server in this thread, whose clients work in other threads."""

    def __init__(self, port: int) -> None:
        self._port = port

    def client(self, user: str = "admin") -> SyncClient:
        """That of a user whose token is the user's name."""
        return SyncClient(access(f"https://127.0.0.1:{self._port}", token=user))

    async def record(self, work: Callable[[], object]) -> Recorder:
        """The shortest of a few records: the server has other work now and then."""
        for _ in range(_TIMES):
            await asyncio.to_thread(work)
        return min([await self._record_once(work) for _ in range(_TIMES)], key=lambda recorder: len(recorder.visits))

    @staticmethod
    async def _record_once(work: Callable[[], object]) -> Recorder:
        await asyncio.sleep(_SETTLE_SECONDS)
        recorder = Recorder()
        sys.setprofile(recorder)
        try:
            await asyncio.to_thread(work)
            await asyncio.sleep(_SETTLE_SECONDS)
        finally:
            sys.setprofile(None)
        return recorder


def make_directory(path: Path) -> Path:
    path.mkdir()
    return path


@contextlib.asynccontextmanager
async def serve(directory: Path, *flags: str) -> AsyncIterator[MeasuredServer]:
    tokens = make_directory(directory) / "tokens.csv"
    tokens.write_text('admin,admin,1,"system:masters"\nreader,reader,2\n')
    tokens.chmod(0o600)
    options = load(
        ["--data-dir", str(directory), "--token-auth-file", str(tokens), *flags], {}, options=PRODUCT.options
    )
    async with app.build(options, PRODUCT) as server:
        listening = socket.create_server(("127.0.0.1", 0))
        web = HttpServer(server.handler, ServedRequest)
        await web.listen(listening, contexts()[0])
        try:
            yield MeasuredServer(listening.getsockname()[1])
        finally:
            server.end_watches()
            web.abort()


def prepare(client: SyncClient) -> None:
    """Some clusters, and a user who may see two of them."""
    for number in range(10):
        client.call(Call("POST", PATH, body=cluster(number, f"c{number}")))
    rules = [
        {
            "apiGroups": ["*"],
            "resources": ["clusters"],
            "verbs": ["get", "list", "watch"],
            "resourceNames": ["c1", "c2"],
        }
    ]
    client.call(Call("POST", f"{_ROLES}/clusterroles", body={"metadata": {"name": "two"}, "rules": rules}))
    binding = {
        "metadata": {"name": "two"},
        "subjects": [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": "two", "apiGroup": "rbac.authorization.k8s.io"},
    }
    client.call(Call("POST", f"{_ROLES}/clusterrolebindings", body=binding))


async def measure(directory: Path) -> dict[str, Recorder]:
    found: dict[str, Recorder] = {}
    numbers = itertools.count()
    async with serve(directory / "sqlite") as server:
        with server.client() as client:
            await asyncio.to_thread(prepare, client)
            found["get"] = await server.record(lambda: client.call(Call("GET", f"{PATH}/c1")))
            found["apply"] = await server.record(lambda: _apply(client, next(numbers)))
            found["filtered-watch"] = await server.record(lambda: _watch(server, client, next(numbers)))
    with EtcdCluster(make_directory(directory / "etcd")) as etcd:
        async with serve(directory / "on-etcd", "--etcd-servers", ",".join(etcd.endpoints)) as server:
            with server.client() as client:
                await asyncio.to_thread(prepare, client)
                found["etcd-write"] = await server.record(lambda: _patch(client, next(numbers)))
    return found


def _apply(client: SyncClient, number: int) -> None:
    body = {
        "apiVersion": API_VERSION,
        "kind": "Cluster",
        "metadata": {"name": "c1", "labels": {"applied": f"a{number}"}},
    }
    path = f"{PATH}/c1?fieldManager=switches&force=true"
    client.call(Call("PATCH", path, body=body, content_type=APPLY_PATCH))


def _patch(client: SyncClient, number: int) -> None:
    body = {"metadata": {"labels": {"patched": f"p{number}"}}}
    client.call(Call("PATCH", f"{PATH}/c1", body=body, content_type=MERGE_PATCH))


def _watch(server: MeasuredServer, writer: SyncClient, number: int) -> None:
    """Opens a watch of a user who may see some clusters, reads what is there, and then one change."""
    call, seen = Call("GET", PATH, query={"watch": True}), b""
    with server.client("reader") as client, client.exchange_stream(call, silence=30) as stream:
        while seen.count(b"\n") < 2:  # noqa: PLR2004 - as many as the user may see
            seen += stream.read()
        _patch(writer, number)
        stream.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", choices=PATHS, help="print the files of one request in their order")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="switches-") as directory:
        found = uvloop.run(measure(Path(directory)))
    if chosen.show:
        print("\n".join(found[chosen.show].visits))
    for name in PATHS:
        visits = found[name].visits
        print(f"{name:16} {len(set(visits)):4} files {len(visits) - 1:5} switches")


if __name__ == "__main__":
    main()
