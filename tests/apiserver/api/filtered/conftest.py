from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.api.clients import empty
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.api.rights import Rights


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("filtered")).running() as started:
        yield started


@pytest.fixture(scope="module")
def rights(server: InProcess) -> Rights:
    return Rights(server)


@pytest.fixture
def client(server: InProcess, rights: Rights) -> Iterator[InProcessClient]:
    client = server.client()
    yield client
    rights.sees("nobody")
    empty(client, CLUSTERS)
