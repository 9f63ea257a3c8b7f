"""Real kubectl as a user who may see some clusters."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterregistry.apiserver.endpoints.request import ServedRequest
from clusterregistry.apiserver.http.server import HttpServer
from tests.apiserver.api.in_process import InProcess
from tests.apiserver.api.objects import CLUSTERS, cluster, path_of
from tests.apiserver.api.rights import Rights
from tests.apiserver.http.http_servers import contexts
from tools import conformance

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="the kubectl programs are for linux/amd64"
)
PATIENCE = 60.0


class Kubectl:
    """kubectl as the user ``nobody``."""

    def __init__(self, port: int, home: Path) -> None:
        self._command = [str(conformance.kubectl("1.36")), f"--server=https://127.0.0.1:{port}"]
        self._command += ["--insecure-skip-tls-verify", "--token=nobodytoken"]
        self._environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(home / "none")}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._command, *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def says(self, *arguments: str) -> list[list[str]]:
        """The words of each line that it prints."""
        output, _ = self.start(*arguments).communicate(timeout=PATIENCE)
        return [line.split() for line in output.splitlines()]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[InProcess]:
    with InProcess(tmp_path / "server").running() as started:
        yield started


@pytest.fixture
def kubectl(server: InProcess, tmp_path: Path) -> Iterator[Kubectl]:
    async def listen() -> tuple[HttpServer[ServedRequest], int]:
        http, listening = HttpServer(server.server.handler, ServedRequest), socket.create_server(("127.0.0.1", 0))
        await http.listen(listening, contexts()[0])
        return http, listening.getsockname()[1]

    http, port = server.run(listen())
    yield Kubectl(port, tmp_path)
    server.run(asyncio.wait_for(http.stop(patience=1), PATIENCE))


def first_cells(lines: list[list[str]]) -> list[str]:
    return [words[0] for words in lines]


def until_watched(server: InProcess) -> None:
    """kubectl lists first and watches from there: a change in between would make it begin again."""

    async def watched() -> bool:
        return any(broadcaster.watchers for broadcaster in server.server.broadcasters)

    until = time.monotonic() + PATIENCE
    while not server.run(watched()):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_get_shows_what_may_be_seen(server: InProcess, kubectl: Kubectl) -> None:
    client, rights = server.client(), Rights(server)
    for name in ("east", "north", "west"):
        client.post(CLUSTERS, cluster(name)).expect(201)
    rights.sees("nobody", "east", "west")
    assert first_cells(kubectl.says("get", "clusters")) == ["NAME", "east", "west"]
    assert first_cells(kubectl.says("get", "clusters", "--chunk-size=1", "-o", "name")) == [
        "cluster.clusterregistry.k8s.io/east",
        "cluster.clusterregistry.k8s.io/west",
    ]
    rights.sees("nobody")
    assert kubectl.says("get", "clusters")[0][:4] == ["Error", "from", "server", "(Forbidden):"]


def test_a_watch_tells_of_rights_that_change(server: InProcess, kubectl: Kubectl) -> None:
    client, rights = server.client(), Rights(server)
    for name in ("east", "north", "west"):
        client.post(CLUSTERS, cluster(name)).expect(201)
    rights.sees("nobody", "east")
    watching = kubectl.start("get", "clusters", "-w", "--output-watch-events")
    assert watching.stdout is not None
    try:
        lines = (line.split() for line in watching.stdout)
        assert next(lines)[:2] == ["EVENT", "NAME"]
        assert next(lines)[:2] == ["ADDED", "east"]
        until_watched(server)
        rights.sees("nobody", "west")
        assert [next(lines)[:2], next(lines)[:2]] == [["DELETED", "east"], ["ADDED", "west"]]
        client.delete(path_of("west")).expect(200)
        assert next(lines)[:2] == ["DELETED", "west"]
    finally:
        watching.kill()
        watching.stdout.close()
        watching.wait(PATIENCE)
