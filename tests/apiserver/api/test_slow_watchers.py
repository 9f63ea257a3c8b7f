"""A watcher that does not read is ended, and does not delay the others."""

from __future__ import annotations

import contextlib
import time

import pytest

from clusterregistry.apiserver.http.connection import WRITE_SECONDS
from clusterregistry.apiserver.registry import watcher
from clusterregistry.client.errors import TransportError
from tests.apiserver.api.clients import ADMIN_TOKEN, Client, Watch, latest_version
from tests.apiserver.api.in_process import InProcessClient, InProcessWatch
from tests.apiserver.api.objects import CLUSTERS, cluster, path_of
from tests.apiserver.server.programs import Program
from tools.processes import wait_for

ADMIN = [("Authorization", f"Bearer {ADMIN_TOKEN}")]


def stalled(client: InProcessClient, selector: str = "") -> InProcessWatch:
    query = f"watch=true&resourceVersion={latest_version(client)}&labelSelector={selector}"
    return client.stalled_watch(f"{CLUSTERS}?{query}", headers=ADMIN)


def terminated(client: Client) -> float:
    lines = client.get("/metrics").body.decode().splitlines()
    line = next(line for line in lines if line.startswith("apiserver_terminated_watchers_total"))
    return float(line.rpartition(" ")[2])


@pytest.mark.parametrize(("limit", "value"), [("FRAMES_LIMIT", 5), ("BYTES_LIMIT", 2000)])
def test_a_watcher_that_does_not_read_is_ended(
    local: InProcessClient, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(watcher, limit, value)
    before = terminated(local)
    with stalled(local) as slow, local.watch(CLUSTERS, resourceVersion=latest_version(local)) as quick:
        for index in range(20):
            local.post(CLUSTERS, cluster(f"n{index:02}")).expect(201)
            assert quick.next()["object"]["metadata"]["name"] == f"n{index:02}"
        wait_for(lambda: slow.aborted)
        slow.go_on()
        assert len(slow.rest()) < 20
    assert terminated(local) == before + 1


def test_a_watcher_that_catches_up_in_time_misses_nothing(local: InProcessClient) -> None:
    with stalled(local) as slow:
        for index in range(30):
            local.post(CLUSTERS, cluster(f"n{index:02}")).expect(201)
        slow.go_on()
        found = [event["object"]["metadata"]["name"] for event in slow.take(30)]
    assert found == [f"n{index:02}" for index in range(30)]


def test_a_watcher_that_was_ended_can_resume(local: InProcessClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "FRAMES_LIMIT", 3)
    start = latest_version(local)
    with stalled(local) as slow:
        for index in range(10):
            local.post(CLUSTERS, cluster(f"n{index}")).expect(201)
        slow.go_on()
        seen = slow.rest()
    last = seen[-1]["object"]["metadata"]["resourceVersion"] if seen else start
    with local.watch(CLUSTERS, resourceVersion=last) as again:
        rest = again.take(10 - len(seen))
    found = [event["object"]["metadata"]["name"] for event in (*seen, *rest)]
    assert found == [f"n{index}" for index in range(10)]


def test_events_outside_of_a_selection_do_not_count_against_the_limit(
    local: InProcessClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "FRAMES_LIMIT", 3)
    with stalled(local, "x=1") as slow:
        for index in range(10):
            local.post(CLUSTERS, cluster(f"n{index}")).expect(201)
        local.post(CLUSTERS, cluster("selected", labels={"x": "1"})).expect(201)
        slow.go_on()
        assert slow.next()["object"]["metadata"]["name"] == "selected"


def test_over_tls_a_watcher_that_does_not_read_is_ended_and_others_are_not_delayed(program: Program) -> None:
    large = "x" * 400_000
    with program.client() as client:
        client.post(CLUSTERS, cluster("a")).expect(201)
        start = client.get(CLUSTERS).expect(200)["metadata"]["resourceVersion"]
        ended, memory = terminated(client), program.resident_bytes()
        with (
            client.watch(CLUSTERS, resourceVersion=start) as asleep,
            client.watch(CLUSTERS, resourceVersion=start) as awake,
        ):
            longest = 0.0
            for index in range(60):
                began = time.monotonic()
                client.put(path_of("a"), cluster("a", f"{index}-{large}")).expect(200)
                assert awake.next()["type"] == "MODIFIED"
                longest = max(longest, time.monotonic() - began)
            assert longest < WRITE_SECONDS / 2  # as long as the server waits for the one that sleeps
            assert terminated(client) == ended + 1
            assert program.resident_bytes() - memory < 100 * 1024 * 1024
            assert complete_events(asleep) < 60
        client.delete(path_of("a")).expect(200)


def complete_events(watch: Watch) -> int:
    """How many events come before the connection is cut, most likely in the middle of one."""
    count = 0
    with contextlib.suppress(TransportError, ValueError):
        for _ in watch:
            count += 1
    return count
