from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.rbac.coverage import described, escalation_message, not_covered, single_rights
from clusterregistry.apiserver.authz.rbac.rules import Rule
from tests.apiserver.authz.rbac.policies import a_rule, path_rule


def covered(wanted: Rule, *held: Rule) -> bool:
    return not not_covered([wanted], held=held)


def test_rights_are_covered_by_one_rule() -> None:
    assert covered(a_rule("get list"), a_rule("list"), a_rule("get"))
    assert not covered(a_rule("get list"), a_rule("list"))
    assert covered(a_rule("get"), a_rule("*", "*", group="*"))
    assert not covered(a_rule("*"), a_rule("get list watch create"))
    assert not covered(a_rule("get", "*"), a_rule("get", "things"))
    assert not covered(a_rule("get", group="*"), a_rule("get"))
    assert not covered(a_rule("get"), path_rule("*", "*"))


def test_names_are_covered_by_the_same_names_or_by_none() -> None:
    assert covered(a_rule("get", names=["a"]), a_rule("get"))
    assert covered(a_rule("get", names=["a", "b"]), a_rule("get", names=["b"]), a_rule("get", names=["a"]))
    assert not covered(a_rule("get", names=["a", "c"]), a_rule("get", names=["a", "b"]))
    assert not covered(a_rule("get"), a_rule("get", names=["a"]))


def test_subresources_are_covered_by_themselves_or_those_of_all() -> None:
    assert covered(a_rule("get", "things/status"), a_rule("get", "*/status"))
    assert covered(a_rule("get", "things/status"), a_rule("get", "*"))
    assert not covered(a_rule("get", "things/status"), a_rule("get", "things"))
    assert not covered(a_rule("get", "things/status"), a_rule("get", "things/*"))
    assert not covered(a_rule("get", "things"), a_rule("get", "*/things"))


def test_paths_are_covered_by_themselves_or_a_star() -> None:
    assert covered(path_rule("get", "/a/b", "/c"), path_rule("get", "/a/*"), path_rule("*", "/c"))
    assert covered(path_rule("get", "/a/*"), path_rule("get", "/a*"))
    assert not covered(path_rule("get", "/a*"), path_rule("get", "/a/*"))
    assert not covered(path_rule("get post", "/a"), path_rule("get", "*"))


def test_the_message_lists_what_is_missing_with_verbs_together() -> None:
    wanted = [
        a_rule("get list", "things others", names=["a"]),
        a_rule("get list get"),
        path_rule("get", "/x"),
    ]
    user = User("jane", groups=("team", 'o"dd'))
    message = escalation_message(user, not_covered(wanted, held=[a_rule("list", "others")]))
    assert message.splitlines() == [
        r'user "jane" (groups=["team" "o\"dd"]) is attempting to grant RBAC permissions not currently held:',
        '{APIGroups:["example.com"], Resources:["others"], ResourceNames:["a"], Verbs:["get"]}',
        '{APIGroups:["example.com"], Resources:["things"], ResourceNames:["a"], Verbs:["get" "list"]}',
        '{APIGroups:["example.com"], Resources:["things"], Verbs:["get" "list" "get"]}',
        '{NonResourceURLs:["/x"], Verbs:["get"]}',
    ]
    assert described(Rule()) == "{}"


def test_the_message_names_the_roles_that_are_missing() -> None:
    problems = [f'clusterrole.rbac.authorization.k8s.io "{name}" not found' for name in ("one", "two")]
    one, two = (
        'clusterroles.rbac.authorization.k8s.io "one" not found',
        'clusterroles.rbac.authorization.k8s.io "two" not found',
    )
    assert escalation_message(User("jane"), [], problems[:1]).endswith(f"; resolution errors: [{one}]")
    assert escalation_message(User("jane"), [], problems).endswith(f"; resolution errors: [[{one}, {two}]]")
    local = ['role.rbac.authorization.k8s.io "role.x" not found']
    assert escalation_message(User("jane"), [], local).endswith('[roles.rbac.authorization.k8s.io "role.x" not found]')


WORDS = st.lists(st.sampled_from(["*", "a", "b"]), max_size=3).map(tuple)
RESOURCES = st.lists(st.sampled_from(["*", "a", "b", "a/s", "*/s", "a/*"]), max_size=3).map(tuple)
NAMES = st.lists(st.sampled_from(["x", "y"]), max_size=2).map(tuple)
URLS = st.lists(st.sampled_from(["*", "/a", "/a/*", "/a*", "/b"]), max_size=2).map(tuple)
RULES = st.one_of(  # validation lets no rule pass that has both
    st.builds(Rule, verbs=WORDS, api_groups=WORDS, resources=RESOURCES, resource_names=NAMES),
    st.builds(Rule, verbs=WORDS, non_resource_urls=URLS),
)


@given(st.lists(RULES, max_size=4))
def test_rules_cover_themselves(held: list[Rule]) -> None:
    assert not_covered(held, held=held) == []


@given(st.lists(RULES, max_size=3), st.lists(RULES, max_size=3))
def test_what_is_missing_is_part_of_what_is_wanted_and_enough(wanted: list[Rule], held: list[Rule]) -> None:
    missing = not_covered(wanted, held=held)
    rights = [right for rule in wanted for right in single_rights(rule)]
    assert all(right in rights for right in missing)
    assert not_covered(wanted, held=[*held, *missing]) == []
