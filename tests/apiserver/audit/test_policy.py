"""Which rule a request falls under."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apiserver.audit import policy_file
from clusterregistry.apiserver.audit.policy import DEFAULT_POLICY, NOTHING, Policy, Recording, Resources, Rule
from clusterregistry.apiserver.audit.settings import Level
from clusterregistry.apiserver.authn.user import ANONYMOUS_USER, User
from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.request_info import RequestInfo
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.audit.trails import JANE
from tests.docs import markdown

METADATA = Recording(level=Level.Metadata)
GROUP = "clusterregistry.k8s.io"


def rule(**conditions: Any) -> Rule:
    return Rule(recording=METADATA, **conditions)


def of(*names: str, group: str = GROUP, only: frozenset[str] = frozenset()) -> Rule:
    return rule(resources=(Resources(group=group, resources=frozenset(names), names=only),))


def info(method: str, target: str) -> RequestInfo:
    path, _, query = target.partition("?")
    return request_info.parse(method, path, query.encode())


GET = info("GET", f"{CLUSTERS}/a")
STATUS = info("PUT", f"{CLUSTERS}/a/status")
LIST = info("GET", CLUSTERS)
NAMESPACED = info("GET", f"/apis/{GROUP}/v1alpha1/namespaces/here/clusters/a")
VERSION = info("GET", "/version")


@pytest.mark.parametrize(
    ("tried", "request_", "expected"),
    [
        (rule(), GET, True),
        (rule(), VERSION, True),
        (rule(users=frozenset({"jane"})), GET, True),
        (rule(users=frozenset({"joe"})), GET, False),
        (rule(groups=frozenset({"editors", "others"})), GET, True),
        (rule(groups=frozenset({"others"})), GET, False),
        (rule(verbs=frozenset({"get"})), GET, True),
        (rule(verbs=frozenset({"get"})), LIST, False),
        (rule(verbs=frozenset({"*"})), GET, False),  # as in kube-apiserver: verbs have no wildcard
        (of(), GET, True),
        (of(), STATUS, True),
        (of(), VERSION, False),
        (of(group=""), GET, False),
        (of("clusters"), GET, True),
        (of("clusters"), STATUS, False),
        (of("*"), STATUS, True),
        (of("*/status"), STATUS, True),
        (of("*/status"), GET, False),
        (of("*/scale"), STATUS, False),
        (of("clusters/*"), STATUS, True),
        (of("clusters/*"), GET, True),
        (of("clusters/status"), STATUS, True),
        (of("others", "clusters/status"), GET, False),
        (of("clusters", only=frozenset({"a"})), GET, True),
        (of("clusters", only=frozenset({"b"})), GET, False),
        (of("clusters", only=frozenset({"a"})), LIST, False),
        (rule(namespaces=frozenset({"here"})), NAMESPACED, True),
        (rule(namespaces=frozenset({"here"})), GET, False),
        (rule(namespaces=frozenset({""})), GET, True),
        (rule(namespaces=frozenset({""})), VERSION, False),
        (rule(paths=("/version",)), VERSION, True),
        (rule(paths=("/ver*",)), VERSION, True),
        (rule(paths=("*",)), VERSION, True),
        (rule(paths=("*",)), GET, False),
        (rule(paths=("/versions", "/v")), VERSION, False),
    ],
)
def test_a_rule_matches_what_it_says(tried: Rule, request_: RequestInfo, *, expected: bool) -> None:
    assert tried.matches(JANE, request_) is expected


def test_a_request_without_a_user_matches_only_rules_without_users() -> None:
    assert rule().matches(None, GET)
    assert not rule(users=frozenset({""})).matches(None, GET)
    assert not rule(groups=frozenset({"system:unauthenticated"})).matches(None, GET)


def test_the_first_rule_that_matches_counts() -> None:
    full = Rule(recording=Recording(level=Level.Request), verbs=frozenset({"get"}))
    policy = Policy([full, rule(users=frozenset({"jane"}))])
    assert policy.recording(JANE, GET).level is Level.Request
    assert policy.recording(JANE, LIST).level is Level.Metadata
    assert policy.recording(ANONYMOUS_USER, LIST) is NOTHING


# The same, stated plainly and slowly.


def plainly(tried: Rule, user: User | None, asked: RequestInfo) -> bool:
    conditions = [not tried.users or (user is not None and any(name == user.name for name in tried.users))]
    conditions.append(not tried.groups or (user is not None and any(each in tried.groups for each in user.groups)))
    conditions.append(not tried.verbs or any(verb == asked.verb for verb in tried.verbs))
    for_resources = bool(tried.namespaces or tried.resources)
    if for_resources:
        conditions.append(asked.is_resource)
        conditions.append(not tried.namespaces or asked.namespace in list(tried.namespaces))
        conditions.append(not tried.resources or any(plainly_names(each, asked) for each in tried.resources))
    elif tried.paths:
        conditions.append(not asked.is_resource)
        conditions.append(any(plainly_covers(path, asked.path) for path in tried.paths))
    return all(conditions)


def plainly_names(named: Resources, asked: RequestInfo) -> bool:
    if named.group != asked.group:
        return False
    for resource in named.resources:
        if named.names and asked.name not in named.names:
            continue
        first, _, second = resource.partition("/")
        if resource == "*" or resource == asked.resource + ("/" + asked.subresource if asked.subresource else ""):
            return True
        if first == "*" and second and second == asked.subresource:
            return True
        if second == "*" and first == asked.resource:
            return True
    return not named.resources


def plainly_covers(wanted: str, path: str) -> bool:
    return wanted == path or (wanted[-1] == "*" and path[: len(wanted) - 1] == wanted[:-1])


def some(*values: str) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(values), max_size=2)


resources = st.builds(
    Resources,
    group=st.sampled_from(["", "g"]),
    resources=some("a", "b", "*", "a/x", "a/*", "*/x", "b/*"),
    names=some("n", "m"),
)
rules = st.builds(
    Rule,
    recording=st.just(METADATA),
    users=some("jane", "joe"),
    groups=some("editors", "others"),
    verbs=some("get", "list", "create"),
    namespaces=some("", "ns"),
    resources=st.lists(resources, max_size=2).map(tuple),
    paths=st.lists(st.sampled_from(["/a", "/a*", "*", "/a/b", "/b*"]), max_size=2).map(tuple),
)
paths = st.sampled_from(["/a", "/a/b", "/b", "/", "/abc"])
resource_requests = st.builds(
    RequestInfo,
    path=st.just("/apis/g/v1/a"),
    verb=st.sampled_from(["get", "list", "create"]),
    is_resource=st.just(True),
    group=st.sampled_from(["", "g"]),
    namespace=st.sampled_from(["", "ns"]),
    resource=st.sampled_from(["a", "b"]),
    name=st.sampled_from(["", "n", "m"]),
    subresource=st.sampled_from(["", "x", "y"]),
)
requests = resource_requests | st.builds(RequestInfo, path=paths, verb=st.sampled_from(["get", "post"]))
users = st.sampled_from([None, JANE, User("joe", groups=("others",)), ANONYMOUS_USER])


@given(rules, users, requests)
def test_matching_agrees_with_the_plain_statement(tried: Rule, user: User | None, asked: RequestInfo) -> None:
    assert tried.matches(user, asked) is plainly(tried, user, asked)


# The default policy

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", CLUSTERS),
        ("PUT", f"{CLUSTERS}/a"),
        ("PATCH", f"{CLUSTERS}/a"),
        ("DELETE", f"{CLUSTERS}/a"),
        ("DELETE", CLUSTERS),
        ("PATCH", f"{CLUSTERS}/a/status"),
        ("POST", ROLES),
        ("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/a"),
    ],
)
def test_every_write_is_recorded_without_its_body(method: str, path: str) -> None:
    for user in (JANE, ANONYMOUS_USER, None):  # None: authentication failed
        recording = DEFAULT_POLICY.recording(user, request_info.parse(method, path, b""))
        assert recording.level is Level.Metadata
        assert recording.omitted_stages == {"RequestReceived"}


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", CLUSTERS),
        ("GET", f"{CLUSTERS}/a"),
        ("GET", f"{CLUSTERS}?watch=true"),
        ("GET", ROLES),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("GET", "/apis"),
        ("GET", "/openapi/v3"),
        ("GET", "/version"),
        ("PATCH", "/readyz"),
        ("DELETE", "/metrics"),
    ],
)
def test_nothing_else_is(method: str, target: str) -> None:
    path, _, query = target.partition("?")
    assert DEFAULT_POLICY.recording(JANE, request_info.parse(method, path, query.encode())) == NOTHING


def test_the_guide_shows_the_very_policy(tmp_path: Path) -> None:
    blocks = markdown.blocks(markdown.page("docs/guides/security/audit.md"))
    shown = next(block.body for block in blocks if block.info == "yaml")
    path = tmp_path / "policy.yaml"
    path.write_text(shown)
    assert tuple(policy_file.load(path).rules) == DEFAULT_POLICY.rules
