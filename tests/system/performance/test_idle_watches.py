"""A watch that has nothing to say takes little memory: there may be thousands of them."""

from __future__ import annotations

from contextlib import ExitStack

from tests.apiserver.api.objects import CLUSTERS, cluster
from tests.apiserver.server.programs import Program

FIRST, MORE = 50, 200
MOST_BYTES = 60_000


def test_an_idle_watch_takes_little_memory(program: Program) -> None:
    with ExitStack() as stack:
        client = stack.enter_context(program.client())

        def watch(count: int) -> None:
            """Opens watches, each of which has seen that it has begun."""
            for _ in range(count):
                stack.enter_context(client.watch(CLUSTERS)).next()

        client.post(CLUSTERS, cluster("seen-by-all")).expect(201)
        stack.callback(client.delete, f"{CLUSTERS}/seen-by-all")
        watch(FIRST)
        before = program.resident_bytes()
        watch(MORE)
        assert (program.resident_bytes() - before) / MORE < MOST_BYTES
