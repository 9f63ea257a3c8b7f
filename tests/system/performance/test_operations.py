"""Operations are those of requests alone."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import AbstractContextManager, nullcontext

import pytest

from tests.system.performance.conftest import ServerWith
from tests.system.performance.operations import background
from tests.system.performance.paths import OBJECTS, reads, steady
from tests.system.performance.servers import CountedServer


async def other_work() -> None:
    """What a task does that never comes to rest, in a module whose operations count."""
    while True:
        shlex.split("a 'long' line of words " * 5)
        await asyncio.sleep(0)


@pytest.mark.parametrize(("started_in", "counts"), [(background(), False), (nullcontext(), True)])
def test_what_the_server_does_by_itself_does_not_count(
    server_with: ServerWith, started_in: AbstractContextManager[None], *, counts: bool
) -> None:
    server = server_with(OBJECTS)
    with server.connect() as client:
        get = reads(client)["get"]
        alone = steady(server, get).total
        with started_in:
            task = server.call(lambda: start(server))
        try:
            beside = server.least(get).total
        finally:
            server.call(task.cancel)
    assert (beside > alone * 2) is counts
    assert counts or beside == pytest.approx(alone, rel=0.01)


def start(server: CountedServer) -> asyncio.Task[None]:
    return server._loop.create_task(other_work())
