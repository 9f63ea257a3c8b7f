"""Every login, every request, every rule: what is allowed, what is refused, and which objects are shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.access import calls, logins
from tests.system.access.oracle import AUTHENTICATED, UNAUTHENTICATED, Grant, Login, Setup, may_review
from tests.system.access.policies import LOCAL_RULES, RULES, SUBJECTS
from tests.system.access.servers import AccessServer, Externals, running

CALLS, SOME, FEW, LOCAL = calls.every(), calls.brief(2), calls.brief(3), calls.local()
SHOWN = 40
EVERYBODY = [("Group", AUTHENTICATED), ("Group", UNAUTHENTICATED)]
ALONE = {"no credentials", "jane's token", "joe's token", "the bot's token", "certificate", "an issuer's token"}
"""One login for each kind of user: rules do not depend on how the user is authenticated."""


@pytest.fixture(scope="module")
def externals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Externals]:
    with Externals(tmp_path_factory.mktemp("externals")).running() as made:
        yield made


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory, externals: Externals) -> Iterator[AccessServer]:
    with running(tmp_path_factory.mktemp("access"), externals, Setup()) as made:
        yield made


def settle(access: AccessServer, *, at_least: int) -> None:
    """Checks that there are no differences, and that enough requests were sent."""
    differences, asked = access.differences, access.asked
    access.differences, access.asked = [], 0
    shown = "\n".join(differences[:SHOWN])
    assert not differences, f"{len(differences)} of {asked} answers are not as expected:\n{shown}"
    assert asked >= at_least


def all_logins(access: AccessServer) -> list[Login]:
    return logins.every(access.externals.tokens())


def users(access: AccessServer) -> list[Login]:
    return [login for login in all_logins(access) if login.label in ALONE]


def test_every_request_with_every_rule(access: AccessServer) -> None:
    for label, rules in RULES.items():
        access.compare(access.grant(Grant(rules, SUBJECTS["several"])), users(access), CALLS, label=label)
    settle(access, at_least=30_000)


def test_every_login_with_every_rule(access: AccessServer) -> None:
    for label, rules in RULES.items():
        access.compare(access.grant(Grant(rules, SUBJECTS["several"])), all_logins(access), FEW, label=label)
    settle(access, at_least=20_000)


@pytest.mark.parametrize("label", ["none", "all", "get by names"])
def test_every_login_with_every_request(access: AccessServer, label: str) -> None:
    access.compare(access.grant(Grant(RULES[label], SUBJECTS["several"])), all_logins(access), CALLS, label=label)
    settle(access, at_least=7_000)


@pytest.mark.parametrize("namespace", ["", calls.HERE, calls.THERE])
def test_every_request_with_rules_that_hold_in_one_namespace(access: AccessServer, namespace: str) -> None:
    for label, rules in LOCAL_RULES.items():
        setup = access.grant(Grant(rules, SUBJECTS["several"], namespace))
        access.compare(setup, users(access), [*LOCAL, *SOME], label=f"{label} in {namespace or 'all'}")
    settle(access, at_least=15_000)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_rule_with_every_subject(access: AccessServer, subject: str) -> None:
    for label, rules in RULES.items():
        setup = access.grant(Grant(rules, SUBJECTS[subject]))
        access.compare(setup, users(access), SOME, label=f"{label} for {subject}")
    settle(access, at_least=4_000)


def test_a_token_webhook_that_is_down_leaves_certificates_alone(access: AccessServer) -> None:
    down = logins.down(access.externals.tokens())
    for label in ("all", "reading"):
        setup = access.grant(Grant(RULES[label], EVERYBODY))
        access.compare_at_once(setup, down, CALLS, label=label)
    settle(access, at_least=500)


@pytest.mark.parametrize(
    ("flag", "setup"),
    [
        ("--anonymous-auth=false", Setup(anonymous=False)),
        ("--authorization-filtered-lists=false", Setup(filtered=False)),
        ("--authorization-mode=AlwaysDeny", Setup(mode="AlwaysDeny")),
        ("--authorization-mode=AlwaysAllow", Setup(mode="AlwaysAllow", anonymous=False)),
    ],
)
def test_a_server_with_other_options(externals: Externals, tmp_path: Path, flag: str, setup: Setup) -> None:
    with running(tmp_path, externals, setup, flag) as access:
        for label in ("none", "all", "get by names", "list and watch by names"):
            access.compare(access.grant(Grant(RULES[label], EVERYBODY)), all_logins(access), SOME, label=label)
        settle(access, at_least=4_000)


def test_reviews_of_access_answer_as_requests_are_decided(access: AccessServer) -> None:
    """A filtered list is no right to list: a review says no."""
    differences = []
    for label, rules in RULES.items():
        setup = access.grant(Grant(rules, SUBJECTS["several"]))
        pairs = [(login.user, call.action) for login in users(access) if login.user is not None for call in SOME]
        for (user, action), allowed in zip(pairs, access.reviewed(pairs), strict=True):
            if allowed != may_review(user, action, setup):
                differences.append(f"{label} | {user.name} | {action}: {allowed}")
    assert not differences, "\n".join(differences[:SHOWN])


def test_reviews_of_access_in_namespaces_answer_as_requests_are_decided(access: AccessServer) -> None:
    differences = []
    for label, rules in LOCAL_RULES.items():
        setup = access.grant(Grant(rules, SUBJECTS["several"], calls.HERE))
        pairs = [(login.user, call.action) for login in users(access) if login.user is not None for call in LOCAL]
        for (user, action), allowed in zip(pairs, access.reviewed(pairs), strict=True):
            if allowed != may_review(user, action, setup):
                differences.append(f"{label} | {user.name} | {action}: {allowed}")
    assert not differences, "\n".join(differences[:SHOWN])
