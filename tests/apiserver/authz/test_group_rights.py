from __future__ import annotations

from collections.abc import Awaitable

import pytest

from clusterregistry.apiserver.authn.user import authenticated
from clusterregistry.apiserver.authz import group_rights
from clusterregistry.apiserver.authz.group_rights import GroupAuthorizer
from clusterregistry.apiserver.authz.interface import ALLOW, DENY, NO_OPINION, Attributes, Decision, UserRules, Verdict
from clusterregistry.apiserver.authz.modes import AlwaysDeny
from clusterregistry.apiserver.authz.rbac.policy import Policy, RBACAuthorizer
from clusterregistry.apiserver.authz.rbac.rules import Rule
from clusterregistry.apiserver.authz.union import Union
from tests.apiserver.authz.groups import Answers, Groups, many, resolved, rights
from tests.apiserver.authz.rbac.policies import GROUP, a_rule, asking, asking_for_path, bound, policy_of

JANE, JOE = authenticated(name="jane"), authenticated(name="joe")
UNDECIDED = Decision(Verdict.DENY, "it does not answer", undecided=True)


def a_policy(*rules: Rule) -> Policy:
    return policy_of({"r": list(rules)}, {"b": bound("r", "User jane")})


def by_role(*rules: Rule) -> Union:
    return Union([AlwaysDeny(), RBACAuthorizer(a_policy(*rules))])


def on(verbs: str, *names: str) -> Rule:
    return a_rule(verbs, "sets/things", names=names)


def one(verb: str = "get", name: str = "a", **more: str) -> Attributes:
    return asking(JANE, verb, name=name, **more)


class Recorded(Answers):
    """Keeps what it is asked."""

    def authorize(self, attributes: Attributes) -> Decision:
        self.last = attributes
        return NO_OPINION


def test_the_authorizers_are_asked_for_the_same_verb_on_the_group() -> None:
    recorded = Recorded()
    rights(recorded, Groups(red="a")).authorize(one("patch", version="v1"))
    assert recorded.last == Attributes(
        user=JANE, verb="patch", is_resource_request=True, group=GROUP, version="v1", resource="sets",
        subresource="things", name="red",
    )  # fmt: skip
    rights(recorded, Groups(red="a")).authorize(one(subresource="status"))
    assert recorded.last.subresource == "things-status"


@pytest.mark.parametrize("later", [False, True])
async def test_one_group_that_gives_the_right_is_enough(*, later: bool) -> None:
    groups = Groups(red="a b", blue="a", green="c")
    decide = rights(by_role(on("get", "red")), groups, later=later).authorize
    decision = await resolved(decide(one()))
    assert decision.allowed
    assert decision.reason == (
        'group rights by sets "red": RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "jane"'
    )
    assert await resolved(decide(one("delete"))) == NO_OPINION
    assert await resolved(decide(one(name="c"))) == NO_OPINION
    assert await resolved(decide(asking(JOE, "get", name="a"))) == NO_OPINION


def test_a_namespace_is_ignored() -> None:
    recorded = Recorded()
    rights(recorded, Groups(red="a")).authorize(one(namespace="n"))
    assert (recorded.last.name, recorded.last.namespace) == ("red", "")


def test_an_allowed_request_needs_no_reason() -> None:
    decision = rights(Answers(red=ALLOW), Groups(red="a")).authorize(one())
    assert decision == Decision(Verdict.ALLOW, 'group rights by sets "red"')


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        ({"a0": DENY, "a1": ALLOW}, Verdict.ALLOW),
        ({"a0": ALLOW, "a1": DENY}, Verdict.ALLOW),
        ({"a0": DENY, "a1": NO_OPINION}, Verdict.NO_OPINION),
        ({"a0": UNDECIDED, "a1": ALLOW}, Verdict.ALLOW),
        ({"a0": UNDECIDED, "a1": DENY}, UNDECIDED),
        ({"a0": NO_OPINION, "a1": UNDECIDED}, UNDECIDED),
    ],
)
async def test_a_denied_group_gives_nothing_and_takes_nothing(
    decisions: dict[str, Decision], expected: Verdict | Decision, *, later: bool
) -> None:
    groups = Groups(**dict.fromkeys(decisions, "a"))
    found = await resolved(rights(Answers(later=later, **decisions), groups).authorize(one()))
    assert expected in (found, found.verdict)


async def test_what_was_undecided_at_once_still_counts_when_others_take_their_time() -> None:
    class Mixed(Answers):
        def authorize(self, attributes: Attributes) -> Decision:
            return UNDECIDED if attributes.name == "a0" else super().authorize(attributes)  # type: ignore[return-value]

    groups = Groups(a0="a", a1="a")
    assert await resolved(rights(Mixed(later=True), groups).authorize(one())) == UNDECIDED


async def test_other_servers_are_asked_some_groups_at_a_time() -> None:
    groups = Groups(**dict.fromkeys(many(40), "a"))
    answers = Answers(later=True, g0017=ALLOW)
    assert (await resolved(rights(answers, groups).authorize(one()))).allowed
    assert len(answers.asked) == 32
    assert answers.most_at_once == 16


async def test_other_servers_are_not_asked_about_too_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_rights, "MOST_ASKED", 3)
    groups = Groups(**dict.fromkeys(many(4), "a"))
    found = rights(Answers(later=True, otherwise=ALLOW), groups)
    decision = await resolved(found.authorize(one()))
    assert decision.verdict is Verdict.NO_OPINION
    assert decision.reason.startswith("4 sets would have to be asked about, which is more than 3")
    asked = await found.ask(one("list", ""))
    assert (asked.allowed, asked.undecided, asked.problem) == (frozenset(), frozenset(many(4)), decision)
    assert await found.first_refused(one(), many(4), verb="join") == ("g0000", decision)
    assert (await resolved(rights(Answers(otherwise=ALLOW), groups).authorize(one()))).allowed


@pytest.mark.parametrize("attributes", [one(name=""), one("create"), one("create", namespace="n")])
def test_there_is_no_opinion_without_an_object(attributes: Attributes) -> None:
    assert rights(by_role(on("delete")), Groups(red="a")).authorize(attributes) == NO_OPINION


def test_the_reason_says_on_which_objects_there_is_one() -> None:
    groups = Groups(**{f"g{number}": "a" for number in range(7)})
    found = rights(by_role(on("list"), on("create", "g1", "g0", "none")), groups)
    shown = '"g0", "g1", "g2", "g3", "g4", ...'
    assert found.authorize(one("list", "")) == Decision(Verdict.NO_OPINION, f"allowed on members of sets {shown} only")
    creating = Decision(Verdict.NO_OPINION, 'allowed on members of sets "g0", "g1" only')
    assert found.authorize(one("create", "")) == creating
    assert found.authorize(one("create", "", namespace="n")) == creating
    assert rights(Answers(otherwise=ALLOW), groups).authorize(one("list", "")) == NO_OPINION


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([on("get")], False),
        ([on("get", "red"), on("create", "blue")], True),
        ([on("create")], False),
        ([on("get", "red"), on("create", "none")], False),
        ([on("get"), a_rule("create", "things")], True),
        ([on("get", "naming")], True),
        ([on("get", "naming"), on("create")], True),
    ],
)
async def test_that_an_object_does_not_exist_is_told_to_who_could_find_out(
    rules: list[Rule], *, allowed: bool, later: bool
) -> None:
    groups = Groups(red="a", blue="b", naming="+gone")
    name = "gone" if rules[0].resource_names == ("naming",) else "never"
    decision = await resolved(rights(by_role(*rules), groups, later=later).authorize(one(name=name)))
    assert decision.allowed is allowed


async def test_only_requests_for_one_object_are_told() -> None:
    found = rights(by_role(on("list create")), Groups(red="a"))
    assert await resolved(found.authorize(one("list", "never"))) == NO_OPINION


@pytest.mark.parametrize("later", [False, True])
async def test_the_right_on_some_group_opens_what_is_decided_later(*, later: bool) -> None:
    groups = Groups(red="a", blue="")
    for decision, allowed in ((ALLOW, True), (NO_OPINION, False), (UNDECIDED, False)):
        found = await resolved(rights(Answers(later=later, blue=decision), groups).decide_on_some(one("create", "")))
        assert found.allowed is allowed
        assert found.undecided is decision.undecided
    assert (await resolved(rights(by_role(on("create", "blue")), groups).decide_on_some(one("create", "")))).allowed
    assert await resolved(rights(by_role(on("create", "no")), groups).decide_on_some(one("create", ""))) == NO_OPINION


async def test_the_first_group_on_which_a_verb_is_missing_is_found() -> None:
    groups = Groups(red="a", blue="a", green="a")
    found = rights(by_role(on("join", "red", "blue")), groups)
    asking_for = one("patch", subresource="status")
    assert await found.first_refused(asking_for, ["red", "blue"], verb="join") is None
    assert await found.first_refused(asking_for, ["red", "green", "blue"], verb="join") == (
        "green",
        Decision(Verdict.NO_OPINION, "Everything is forbidden."),
    )
    asked = found.group_attributes(asking_for, "red", verb="join")
    assert (asked.verb, asked.subresource, asked.name) == ("join", "things", "red")
    assert found.described("red") == 'sets "red"'


def test_the_listed_groups_hold_until_rights_or_groups_change(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, groups = a_policy(on("list", "red", "blue", "new")), Groups(red="a", blue="b", green="c")
    union = Union([RBACAuthorizer(policy)])
    asked: list[str] = []
    decide = union.authorize

    def authorize(attributes: Attributes) -> Decision | Awaitable[Decision]:
        asked.append(attributes.name)
        return decide(attributes)

    monkeypatch.setattr(union, "authorize", authorize)
    found = rights(union, groups)
    for _ in range(2):
        assert found.listed(one("list", "")) == frozenset({"red", "blue"})
    assert len(asked) == 3
    groups.change(5, red="a", new="")
    assert found.listed(one("list", "")) == frozenset({"red", "new"})
    policy.set_role("r", [on("list")], revision=6)
    assert found.listed(one("list", "")) == frozenset({"red", "new"})
    policy.remove_binding("b", revision=7)
    assert found.listed(one("list", "")) == frozenset()


def test_so_many_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_rights, "_CACHED", 2)
    found = rights(by_role(on("list")), Groups(red="a"))
    for verb in ("list", "watch", "create", "list"):
        assert found.listed(one(verb, "")) == (frozenset({"red"}) if verb == "list" else frozenset())


async def test_groups_of_other_servers_are_asked_for() -> None:
    groups = Groups(**dict.fromkeys(many(20), "a"))
    found = rights(Answers(later=True, g0001=ALLOW, g0018=ALLOW, g0019=DENY), groups)
    assert found.listed(one("list", "")) is None
    asked = await found.ask(one("list", ""))
    assert (asked.allowed, asked.undecided, asked.problem) == (frozenset({"g0001", "g0018"}), frozenset[str](), None)
    asked = await rights(Answers(later=True, g0001=ALLOW, g0002=UNDECIDED), groups).ask(one("list", ""))
    assert (asked.allowed, asked.undecided, asked.problem) == (frozenset({"g0001"}), frozenset({"g0002"}), UNDECIDED)


def test_an_authorizer_of_groups_is_the_last_of_several() -> None:
    found = rights(by_role(on("get", "red")), Groups(red="a"))
    last = GroupAuthorizer({(GROUP, "things"): found})
    union = Union((by_role(), last))
    for attributes, allowed in (
        (one(), True),
        (asking(JANE, "get", "others", name="a"), False),
        (asking_for_path(JANE, "get", "/things/a"), False),
    ):
        decision = union.authorize(attributes)
        assert isinstance(decision, Decision)
        assert decision.allowed is allowed
    assert last.rules_of(JANE) == UserRules()
    assert not union.rules_of(JANE).incomplete
