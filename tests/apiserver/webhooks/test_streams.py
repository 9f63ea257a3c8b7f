"""Answers that come bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.webhooks import config_file, transport
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.transport import Call, Transport
from tests.remote_servers import PATIENCE, Authority, RemoteServer, Reply, kubeconfig


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RemoteServer]:
    with RemoteServer(Authority(tmp_path)) as started:
        yield started


async def streamed(server: RemoteServer, directory: Path) -> list[dict[str, Any]]:
    path = kubeconfig(directory / "kubeconfig", server.url, cluster={"certificate-authority": "authority.crt"})
    made = Transport(config_file.load(path).tls, patience=PATIENCE)
    try:
        return [document async for document in made.documents(Call(url=server.url), silence=PATIENCE)]
    finally:
        await made.close()


async def test_each_line_is_a_document(server: RemoteServer, tmp_path: Path) -> None:
    server.answer = lambda _: Reply(body=b'{"a": 1}\n\n{"b": 2}\n{"not": "ended')
    assert await streamed(server, tmp_path) == [{"a": 1}, {"b": 2}]


async def test_a_line_without_an_end_is_not_waited_for(
    server: RemoteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER", 100)
    server.answer = lambda _: Reply(body=b"x" * 1000)
    with pytest.raises(CallFailed, match="a line of its answer is larger"):
        await streamed(server, tmp_path)


@pytest.mark.parametrize("body", [b"no json\n", b"[1]\n"])
async def test_what_is_no_document_is_a_failure(server: RemoteServer, tmp_path: Path, body: bytes) -> None:
    server.answer = lambda _: Reply(body=body)
    with pytest.raises(CallFailed, match="its answer is no"):
        await streamed(server, tmp_path)


async def test_refusals_and_broken_connections_are_failures(server: RemoteServer, tmp_path: Path) -> None:
    server.answer = lambda _: Reply(status=403)
    with pytest.raises(CallFailed, match="status 403") as raised:
        await streamed(server, tmp_path)
    assert raised.value.status == 403
    server.answer = lambda _: Reply(hang_up=True)
    with pytest.raises(CallFailed):
        await streamed(server, tmp_path)
    server.stop()
    with pytest.raises(CallFailed):
        await streamed(server, tmp_path)
