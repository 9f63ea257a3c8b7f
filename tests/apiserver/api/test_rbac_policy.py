"""What roles and bindings allow counts from the next request on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster, path_of
from tests.apiserver.api.rbac_objects import BINDINGS, NOBODY, ROLES, VIEWER, binding, role, rule

Serve = Callable[..., InProcessClient]


@pytest.fixture
def registry(serve: Serve) -> InProcessClient:
    client = serve()
    client.post(CLUSTERS, cluster("a")).expect(201)
    return client


def test_a_binding_gives_a_role_to_a_user_and_taking_it_away_ends_that(registry: InProcessClient) -> None:
    registry.post(ROLES, role("reader", rule("get"))).expect(201)
    registry.get(path_of("a"), headers=NOBODY).expect(403)
    registry.post(BINDINGS, binding("readers", "reader", User="nobody")).expect(201)
    registry.get(path_of("a"), headers=NOBODY).expect(200)
    registry.get(path_of("a"), headers=VIEWER).expect(403)
    registry.delete(f"{BINDINGS}/readers").expect(200)
    registry.get(path_of("a"), headers=NOBODY).expect(403)


def test_a_change_of_a_role_counts_for_all_who_have_it(registry: InProcessClient) -> None:
    registry.post(ROLES, role("writer", rule("get"))).expect(201)
    registry.post(BINDINGS, binding("writers", "writer", Group="viewers", User="nobody")).expect(201)
    for who in (NOBODY, VIEWER):
        registry.delete(path_of("a"), headers=who).expect(403)
    registry.patch(f"{ROLES}/writer", {"rules": [rule("get", "patch")]}).expect(200)
    for who in (NOBODY, VIEWER):
        registry.patch(path_of("a"), {"metadata": {"labels": {"x": "y"}}}, headers=who).expect(200)
    registry.delete(f"{ROLES}/writer").expect(200)
    for who in (NOBODY, VIEWER):
        registry.get(path_of("a"), headers=who).expect(403)


def test_a_role_that_is_bound_before_it_is_made_counts_once_it_is_there(registry: InProcessClient) -> None:
    registry.post(BINDINGS, binding("early", "late", User="nobody")).expect(201)
    assert '"late" not found' in registry.get(path_of("a"), headers=NOBODY).expect(403)["message"]
    registry.put(f"{ROLES}/late", role("late", rule("get"))).expect(201)
    registry.get(path_of("a"), headers=NOBODY).expect(200)


def test_masters_need_no_role(registry: InProcessClient) -> None:
    registry.delete(BINDINGS).expect(200)
    registry.delete(ROLES).expect(200)
    registry.get(path_of("a")).expect(200)
    registry.get("/readyz", headers={"Authorization": None}).expect(403)


def test_the_policy_is_there_again_after_a_restart(tmp_path: Path) -> None:
    with InProcess(tmp_path).running() as server:
        server.client().post(ROLES, role("reader", rule("list"))).expect(201)
        server.client().post(BINDINGS, binding("readers", "reader", Group="viewers")).expect(201)
    with InProcess(tmp_path).running() as server:
        server.client().get(CLUSTERS, headers=VIEWER).expect(200)


def test_who_may_always_do_everything_may_give_it_away(serve: Serve) -> None:
    client = serve("--authorization-mode=AlwaysAllow")
    client.post(ROLES, role("all", rule("*", resource="*", group="*")), headers=NOBODY).expect(201)
    client.post(BINDINGS, binding("all", "cluster-admin", User="nobody"), headers=NOBODY).expect(201)
