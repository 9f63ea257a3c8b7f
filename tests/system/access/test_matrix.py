"""Every state of authentication, every request, every rule: who is let in, who is refused, and who sees what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.access import asks, states
from tests.system.access.oracle import AUTHENTICATED, UNAUTHENTICATED, Grant, Setup, State, may
from tests.system.access.policies import RULES, SUBJECTS
from tests.system.access.worlds import Others, World, running

ASKS, SOME, FEW = asks.every(), asks.brief(2), asks.brief(3)
SHOWN = 40
EVERYBODY = [("Group", AUTHENTICATED), ("Group", UNAUTHENTICATED)]
ALONE = {"no credentials", "jane's token", "joe's token", "the bot's token", "certificate", "an issuer's token"}
"""One state for each kind of user: what others say of the same user does not depend on rules."""


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Others]:
    with Others(tmp_path_factory.mktemp("others")).running() as made:
        yield made


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, others: Others) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("world"), others, Setup()) as made:
        yield made


def settle(world: World, *, at_least: int) -> None:
    """All differences at once, and a check that the questions were asked."""
    differences, asked = world.differences, world.asked
    world.differences, world.asked = [], 0
    shown = "\n".join(differences[:SHOWN])
    assert not differences, f"{len(differences)} of {asked} answers are not as expected:\n{shown}"
    assert asked >= at_least


def everybody(world: World) -> list[State]:
    return states.every(world.others.tokens())


def users(world: World) -> list[State]:
    return [state for state in everybody(world) if state.label in ALONE]


def test_every_request_with_every_rule(world: World) -> None:
    for label, rules in RULES.items():
        world.compare(world.grant(Grant(rules, SUBJECTS["several"])), users(world), ASKS, label=label)
    settle(world, at_least=30_000)


def test_every_state_of_authentication_with_every_rule(world: World) -> None:
    for label, rules in RULES.items():
        world.compare(world.grant(Grant(rules, SUBJECTS["several"])), everybody(world), FEW, label=label)
    settle(world, at_least=20_000)


@pytest.mark.parametrize("label", ["none", "all", "get by names"])
def test_every_state_of_authentication_with_every_request(world: World, label: str) -> None:
    world.compare(world.grant(Grant(RULES[label], SUBJECTS["several"])), everybody(world), ASKS, label=label)
    settle(world, at_least=7_000)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_rule_with_every_subject(world: World, subject: str) -> None:
    for label, rules in RULES.items():
        setup = world.grant(Grant(rules, SUBJECTS[subject]))
        world.compare(setup, users(world), SOME, label=f"{label} for {subject}")
    settle(world, at_least=4_000)


def test_a_webhook_that_is_down_knows_no_token_and_hides_no_certificate(world: World) -> None:
    whoever = states.down(world.others.tokens())
    for label in ("all", "reading"):
        setup = world.grant(Grant(RULES[label], EVERYBODY))
        world.compare_at_once(setup, whoever, ASKS, label=label)
    settle(world, at_least=500)


@pytest.mark.parametrize(
    ("flag", "setup"),
    [
        ("--anonymous-auth=false", Setup(anonymous=False)),
        ("--authorization-filtered-lists=false", Setup(filtered=False)),
        ("--authorization-mode=AlwaysDeny", Setup(mode="AlwaysDeny")),
        ("--authorization-mode=AlwaysAllow", Setup(mode="AlwaysAllow", anonymous=False)),
    ],
)
def test_a_server_that_is_set_up_otherwise(others: Others, tmp_path: Path, flag: str, setup: Setup) -> None:
    with running(tmp_path, others, setup, flag) as world:
        for label in ("none", "all", "get by names", "list and watch by names"):
            world.compare(world.grant(Grant(RULES[label], EVERYBODY)), everybody(world), SOME, label=label)
        settle(world, at_least=4_000)


def test_reviews_of_access_answer_as_requests_are_decided(world: World) -> None:
    """What is shown to those who may not list is not theirs to list: a review says no."""
    differences = []
    for label, rules in RULES.items():
        setup = world.grant(Grant(rules, SUBJECTS["several"]))
        pairs = [(state.user, ask.wish) for state in users(world) if state.user is not None for ask in SOME]
        for (user, wish), allowed in zip(pairs, world.reviewed(pairs), strict=True):
            if allowed != may(user, wish, setup):
                differences.append(f"{label} | {user.name} | {wish}: {allowed}")
    assert not differences, "\n".join(differences[:SHOWN])
