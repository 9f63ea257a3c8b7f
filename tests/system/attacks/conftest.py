"""The server under attack: the real command with its TLS, a secret in it, and an eye on its memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.api.objects import CLUSTERS, cluster
from tests.apiserver.server.programs import Program
from tests.system.attacks.raw import SECRET, Raw

MEBIBYTE = 1024 * 1024
ALLOWED_GROWTH = 160 * MEBIBYTE
"""What all attacks together may leave in the memory of the process; caches and the heap's holes included."""


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """After all attacks: it lives, nothing went wrong inside, and its memory is what it was."""
    with Program(tmp_path_factory.mktemp("attacked"), "--request-timeout=20s") as program:
        with program.client() as client:
            client.post(CLUSTERS, cluster(SECRET)).expect(201)
            for _ in range(20):
                client.get(CLUSTERS).expect(200)
            before = program.resident_bytes()
        yield program
        with program.client() as client:
            client.get(CLUSTERS).expect(200)
        grown = program.resident_bytes() - before
        assert grown < ALLOWED_GROWTH, f"{grown / MEBIBYTE:.0f} MiB more than before"
        assert "Traceback" not in program.logged()


@pytest.fixture
def raw(attacked: Program) -> Raw:
    return Raw(attacked)
