"""What users with rights on sets pay for lists, beside administrators, and what nobody pays who has none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.api.group_objects import SETS, cluster_set, on_sets
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.api.rbac_objects import BINDINGS, ROLES, binding, role
from tests.system.performance.clients import RawClient
from tests.system.performance.objects import name_of
from tests.system.performance.operations import Operations
from tests.system.performance.paths import TABLE, steady
from tests.system.performance.servers import CountedServer, fill, serving

MANY = 10_000
SET_COUNT, SET_SIZE = 50, 100
MEMBERS = SET_COUNT * SET_SIZE
TEAM, PAULA = "Impersonate-User: team", "Impersonate-User: paula"
"""The first has rights on all of the sets, the second on one."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CountedServer]:
    """Each set has clusters of its own, by their names: the clusters of these tests have equal labels."""
    directory = tmp_path_factory.mktemp("sets")
    fill(directory, MANY)
    with serving(directory) as started:
        with started.connect() as client:
            for number in range(SET_COUNT):
                members = [name_of(each) for each in range(number, MEMBERS, SET_COUNT)]
                client.send("POST", SETS, cluster_set(f"set-{number}", clusters=members))
            for user, names in (("team", [f"set-{number}" for number in range(SET_COUNT)]), ("paula", ["set-7"])):
                client.send("POST", ROLES, role(user, on_sets("get", "list", names=names)))
                client.send("POST", BINDINGS, binding(user, user, User=user))
        yield started


def listed(server: CountedServer, client: RawClient, *headers: str, limit: int = 0) -> Operations:
    target = f"{CLUSTERS}?limit={limit}" if limit else CLUSTERS
    client.send("GET", target, None, *headers)  # the first one of its kind fills caches
    return server.least(lambda: client.send("GET", target, None, *headers), times=2)


@pytest.mark.parametrize("kind", [(), (TABLE,)], ids=["objects", "table"])
def test_a_list_by_fifty_sets_takes_for_each_object_at_most_twice_what_an_administrator_pays(
    server: CountedServer, kind: tuple[str, ...]
) -> None:
    with server.connect() as client:
        everything = listed(server, client, *kind)
        by_sets = listed(server, client, TEAM, *kind)
    assert by_sets.total / MEMBERS < 2 * everything.total / MANY


def test_a_list_of_few_members_takes_nothing_for_other_objects(server: CountedServer) -> None:
    with server.connect() as client:
        page, few = listed(server, client, limit=SET_SIZE), listed(server, client, PAULA)
    assert few.total < page.total + MANY


def test_a_get_by_a_set_takes_at_most_twice_what_an_administrator_pays(server: CountedServer) -> None:
    with server.connect() as client:
        alone = steady(
            server,
            lambda: client.send(
                "GET", f"{CLUSTERS}/{name_of(0)}", None, "Impersonate-User: x", "Impersonate-Group: system:masters"
            ),
        )
        by_set = steady(server, lambda: client.send("GET", f"{CLUSTERS}/{name_of(0)}", None, TEAM))
    assert by_set.total < 2 * alone.total
