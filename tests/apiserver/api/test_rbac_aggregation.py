"""A role with an aggregation rule has the rules of all roles that its selectors match."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.api.rbac_objects import (
    BINDINGS,
    NOBODY,
    ROLES,
    aggregate,
    binding,
    role,
    rule,
    rules_of,
)
from tools.processes import wait_for

GET, LIST, WATCH = rule("get"), rule("list"), rule("watch")


@pytest.fixture
def registry(serve: Callable[..., InProcessClient]) -> InProcessClient:
    return serve()


def test_rules_come_and_go_with_the_roles_that_are_selected(registry: InProcessClient) -> None:
    registry.post(ROLES, role("part-b", LIST, GET, labels={"to": "sum"})).expect(201)
    registry.post(ROLES, aggregate("sum", to="sum", also="sum")).expect(201)
    wait_for(lambda: rules_of(registry, "sum") == [LIST, GET])
    registry.post(ROLES, role("part-a", GET, WATCH, labels={"also": "sum"})).expect(201)
    wait_for(lambda: rules_of(registry, "sum") == [GET, WATCH, LIST])
    registry.patch(f"{ROLES}/part-b", {"metadata": {"labels": None}}).expect(200)
    wait_for(lambda: rules_of(registry, "sum") == [GET, WATCH])
    registry.delete(f"{ROLES}/part-a").expect(200)
    wait_for(lambda: rules_of(registry, "sum") is None)


def test_rules_that_somebody_writes_are_replaced(registry: InProcessClient) -> None:
    registry.post(ROLES, role("part", GET, labels={"to": "sum"})).expect(201)
    registry.post(ROLES, {**aggregate("sum", to="sum"), "rules": [WATCH]}).expect(201)
    wait_for(lambda: rules_of(registry, "sum") == [GET])
    registry.patch(f"{ROLES}/sum", {"rules": [LIST]}).expect(200)
    wait_for(lambda: rules_of(registry, "sum") == [GET])
    managers = registry.get(f"{ROLES}/sum").expect(200)["metadata"]["managedFields"]
    assert "clusterrole-aggregation-controller" in {entry["manager"] for entry in managers}


def test_a_role_may_be_made_of_one_that_is_made_of_others(registry: InProcessClient) -> None:
    registry.post(ROLES, role("mine", rule("get", resource="things"), labels={_to("view"): "true"})).expect(201)
    for name in ("view", "edit", "admin"):
        wait_for(lambda name=name: rule("get", resource="things") in (rules_of(registry, name) or []))  # type: ignore[misc]


def test_two_roles_that_are_made_of_each_other_come_to_rest(registry: InProcessClient) -> None:
    one, two = aggregate("one", part="one"), aggregate("two", part="two")
    one["metadata"]["labels"], two["metadata"]["labels"] = {"part": "two"}, {"part": "one"}
    for obj in (one, two, role("part", GET, LIST, labels={"part": "one"})):
        registry.post(ROLES, obj).expect(201)
    wait_for(lambda: rules_of(registry, "one") == rules_of(registry, "two") == [GET, LIST])


def test_what_is_collected_counts_for_those_who_have_the_role(registry: InProcessClient) -> None:
    registry.post(ROLES, aggregate("sum", to="sum")).expect(201)
    registry.post(BINDINGS, binding("sum", "sum", User="nobody")).expect(201)
    registry.get(CLUSTERS, headers=NOBODY).expect(403)
    registry.post(ROLES, role("part", LIST, labels={"to": "sum"})).expect(201)
    wait_for(lambda: registry.get(CLUSTERS, headers=NOBODY).status == 200)


def _to(name: str) -> str:
    return f"rbac.authorization.k8s.io/aggregate-to-{name}"
