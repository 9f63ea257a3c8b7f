"""What the server does grows with what is asked of it, and with nothing else."""

from __future__ import annotations

import pytest

from tests.apiserver.api.objects import CLUSTERS
from tests.system.performance.conftest import ServerWith
from tests.system.performance.operations import Operations
from tests.system.performance.paths import OBJECTS as FEW
from tests.system.performance.paths import TABLE, delivery, reads, steady
from tests.system.performance.servers import CountedServer

MANY = 20_000
MANY_ROWS = 4_000
FIRST_ROWS = 2_000
MADE_AT_ONCE = 500
"""Rows that may be made without a turn of the loop: it takes ten times as long as to write them."""
MOST_AT_ONCE = 2_000
"""Objects of a list that may be written without a turn of the loop."""


def test_a_get_takes_the_same_among_many_objects_as_among_few(server_with: ServerWith) -> None:
    def get(server: CountedServer) -> int:
        with server.connect() as client:
            return steady(server, reads(client)["get"]).total

    assert get(server_with(MANY)) == pytest.approx(get(server_with(FEW)), rel=0.01)


def test_a_page_takes_the_same_from_many_objects_as_from_few(server_with: ServerWith) -> None:
    def page(server: CountedServer) -> int:
        with server.connect() as client:
            return steady(server, lambda: client.send("GET", f"{CLUSTERS}?limit=50")).total

    assert page(server_with(MANY)) == pytest.approx(page(server_with(FEW)), rel=0.02)


def test_a_long_list_takes_for_each_object_no_more_than_a_short_one_and_lets_others_have_their_turns(
    server_with: ServerWith,
) -> None:
    few, many = counted(server_with(FEW), CLUSTERS), counted(server_with(MANY), CLUSTERS)
    assert many.total / MANY < few.total / FEW * 1.05
    assert many.longest_run < few.total * MOST_AT_ONCE / FEW


def test_a_long_table_takes_for_each_row_no_more_than_a_short_one_and_lets_others_have_their_turns(
    server_with: ServerWith,
) -> None:
    few, many = (counted(server_with(MANY), f"{CLUSTERS}?limit={rows}", TABLE) for rows in (FEW, MANY_ROWS))
    assert many.total / MANY_ROWS < few.total / FEW * 1.05
    assert many.longest_run < few.total * MOST_AT_ONCE / FEW


def test_the_first_long_table_lets_others_have_their_turns_while_its_rows_are_made(server_with: ServerWith) -> None:
    server = server_with(FIRST_ROWS)
    with server.connect() as client:
        first, later = (server.counted(lambda: client.send("GET", CLUSTERS, None, TABLE)) for _ in range(2))
    assert first.total > later.total * 2  # the rows were made
    assert first.longest_run < first.total * MADE_AT_ONCE / FIRST_ROWS


def counted(server: CountedServer, target: str, *headers: str) -> Operations:
    """Only once: these are long."""
    with server.connect() as client:
        client.send("GET", target, None, *headers)  # the first one of its kind fills caches
        return server.counted(lambda: client.send("GET", target, None, *headers))


def test_an_event_takes_for_each_watcher_the_same_among_many_watchers_as_among_few(server_with: ServerWith) -> None:
    few, many = (delivery(server_with(FEW), watchers=count).total for count in (10, 40))
    assert many < few * 1.05


def test_an_event_takes_the_same_among_many_objects_as_among_few(server_with: ServerWith) -> None:
    few, many = (delivery(server_with(count), watchers=10).total for count in (FEW, MANY))
    assert many == pytest.approx(few, rel=0.1)
