"""What reviews make of what authenticators and authorizers say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.user import ANONYMOUS_USER, User
from clusterregistry.apiserver.authz.interface import Attributes, Decision, PathRule, ResourceRule, UserRules, Verdict
from clusterregistry.apiserver.reviews.authentication import SelfSubjectReviews, TokenReviews
from clusterregistry.apiserver.reviews.authorization import (
    SelfSubjectAccessReviews,
    SelfSubjectRulesReviews,
    SubjectAccessReviews,
)
from clusterregistry.apiserver.reviews.interface import Review

JANE = User("jane", "u-1", ("devs", "system:authenticated"), {"scopes": ("view", "edit")})


class Saying:
    """An authorizer that says the same of everything, at once or later, and remembers what it was asked."""

    def __init__(self, decision: Decision, *, later: bool = False) -> None:
        self._decision = decision
        self._later = later
        self.asked: list[Attributes] = []

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        self.asked.append(attributes)
        return self._eventually() if self._later else self._decision

    async def _eventually(self) -> Decision:
        return self._decision


def ask(review: Review, spec: dict[str, Any] | None = None, user: User = JANE) -> dict[str, Any]:
    definition = review.definition
    question = {"apiVersion": f"{definition.group}/v1", "kind": definition.kind, "metadata": {}}
    question |= {} if spec is None else {"spec": spec}
    review.validate(question)
    return asyncio.run(review.answer(question, user))


ATTRIBUTES = {"verb": "get", "group": "g", "version": "v", "resource": "r", "subresource": "s", "name": "n"}


@pytest.mark.parametrize(
    ("decision", "status"),
    [
        (Decision(Verdict.ALLOW), {"allowed": True}),
        (Decision(Verdict.ALLOW, "because"), {"allowed": True, "reason": "because"}),
        (Decision(Verdict.DENY, "no"), {"allowed": False, "denied": True, "reason": "no"}),
        (Decision(Verdict.NO_OPINION), {"allowed": False}),
    ],
)
def test_the_status_is_what_the_authorizer_decides(decision: Decision, status: dict[str, Any]) -> None:
    for authorizer in (Saying(decision), Saying(decision, later=True)):
        assert ask(SelfSubjectAccessReviews(authorizer), {"resourceAttributes": ATTRIBUTES})["status"] == status


def test_an_attribute_of_the_subject_may_be_null() -> None:
    """A nil slice in Go, which kube-apiserver takes."""
    authorizer = Saying(Decision(Verdict.ALLOW))
    spec = {"user": "jane", "extra": {"scopes": None}, "resourceAttributes": ATTRIBUTES}
    assert ask(SubjectAccessReviews(authorizer), spec)["status"]["allowed"]
    assert authorizer.asked[0].user == User("jane", "", (), {"scopes": ()})


def test_the_attributes_are_those_of_the_review() -> None:
    authorizer = Saying(Decision(Verdict.ALLOW))
    ask(SelfSubjectAccessReviews(authorizer), {"resourceAttributes": {**ATTRIBUTES, "namespace": "ns"}})
    ask(SelfSubjectAccessReviews(authorizer), {"nonResourceAttributes": {"path": "/x", "verb": "post"}})
    assert authorizer.asked == [
        Attributes(
            user=JANE,
            verb="get",
            is_resource_request=True,
            group="g",
            version="v",
            resource="r",
            subresource="s",
            name="n",
            namespace="ns",
        ),
        Attributes(user=JANE, verb="post", is_resource_request=False, path="/x"),
    ]


def test_a_subject_has_exactly_the_groups_of_the_review() -> None:
    authorizer = Saying(Decision(Verdict.NO_OPINION))
    who = {"user": "eve", "uid": "7", "groups": ["a"], "extra": {"k": ["v"]}}
    for spec in (who, {"groups": ["a"]}):
        ask(SubjectAccessReviews(authorizer), {"resourceAttributes": {}} | spec)
    assert [each.user for each in authorizer.asked] == [User("eve", "7", ("a",), {"k": ("v",)}), User("", "", ("a",))]


def test_self_subject_review() -> None:
    review = SelfSubjectReviews(lambda: "2020-01-02T03:04:05Z")
    assert ask(review) == {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2020-01-02T03:04:05Z"},
        "status": {
            "userInfo": {
                "username": "jane",
                "uid": "u-1",
                "groups": ["devs", "system:authenticated"],
                "extra": {"scopes": ["view", "edit"]},
            }
        },
    }
    assert ask(review, user=ANONYMOUS_USER)["status"]["userInfo"] == {
        "username": "system:anonymous",
        "groups": ["system:unauthenticated"],
    }


class Listing:
    def __init__(self, rules: UserRules) -> None:
        self._rules = rules

    def rules_of(self, user: User, *, namespace: str = "") -> UserRules:
        assert user == JANE
        self.namespace = namespace
        return self._rules


def test_the_rules_of_a_user() -> None:
    rules = UserRules(
        resource_rules=(
            ResourceRule(verbs=("get",), api_groups=("g",), resources=("r",), resource_names=("n",)),
            ResourceRule(verbs=("*",), api_groups=("*",), resources=("*",)),
        ),
        path_rules=(PathRule(verbs=("get",), non_resource_urls=("/x",)),),
    )
    listing = Listing(rules)
    assert ask(SelfSubjectRulesReviews(listing), {"namespace": "default"}) == {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
        "status": {
            "resourceRules": [
                {"verbs": ["get"], "apiGroups": ["g"], "resources": ["r"], "resourceNames": ["n"]},
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            ],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
            "incomplete": False,
        },
    }
    assert listing.namespace == "default"


@pytest.mark.parametrize(("problems", "told"), [(("a",), "a"), (("a", "b"), "[a, b]"), (("a", "a"), "a")])
def test_a_list_of_rules_reports_what_is_missing(problems: tuple[str, ...], told: str) -> None:
    review = SelfSubjectRulesReviews(Listing(UserRules(incomplete=True, problems=problems)))
    assert ask(review, {"namespace": "x"})["status"] == {
        "resourceRules": [],
        "nonResourceRules": [],
        "incomplete": True,
        "evaluationError": told,
    }


class Knowing:
    """Somebody who knows Jane's token, at once or later."""

    def __init__(self, token: str, *, later: bool = False) -> None:
        self._token = token
        self._later = later

    def user_of(self, token: str) -> User | Awaitable[User | None] | None:
        user = JANE if token == self._token else None
        return self._eventually(user) if self._later else user

    async def _eventually(self, user: User | None) -> User | None:
        return user


REFUSED = {"user": {}, "error": "invalid bearer token"}
KNOWN = {
    "username": "jane",
    "uid": "u-1",
    "groups": ["devs", "system:authenticated"],
    "extra": {"scopes": ["view", "edit"]},
}


@pytest.mark.parametrize("token", ["one", "two"])
def test_every_source_of_tokens_is_asked(token: str) -> None:
    review = TokenReviews([Knowing("one"), Knowing("two", later=True)])
    assert ask(review, {"token": token})["status"] == {"authenticated": True, "user": KNOWN}
    assert ask(review, {"token": "three"})["status"] == REFUSED
    assert ask(TokenReviews([]), {"token": token})["status"] == REFUSED


@pytest.mark.parametrize(
    ("own", "asked", "audiences"),
    [
        ((), None, None),
        ((), ["a"], "refused"),
        (("a", "b"), None, ["a", "b"]),
        (("a", "b"), ["b", "c"], ["b"]),
        (("a", "b"), ["c"], "refused"),
    ],
)
def test_a_token_is_good_for_the_audiences_of_the_server(
    own: tuple[str, ...], asked: list[str] | None, audiences: list[str] | str | None
) -> None:
    spec = {"token": "one"} | ({} if asked is None else {"audiences": asked})
    status = ask(TokenReviews([Knowing("one")], audiences=own), spec)["status"]
    if audiences == "refused":
        assert status == REFUSED
    else:
        assert status == {"authenticated": True, "user": KNOWN} | ({"audiences": audiences} if audiences else {})


@pytest.mark.parametrize("review", [TokenReviews([]), SelfSubjectRulesReviews(Listing(UserRules()))])
def test_a_question_without_its_subject_is_a_bad_request(review: Review) -> None:
    with pytest.raises(APIError) as refused:
        ask(review)
    assert refused.value.code == 400
