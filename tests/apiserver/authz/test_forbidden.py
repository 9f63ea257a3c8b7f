from __future__ import annotations

from typing import Any

import pytest

from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.forbidden import forbidden, forbidden_message
from clusterregistry.apiserver.authz.interface import NO_OPINION, Attributes, Decision, Verdict


def attributes(**changes: Any) -> Attributes:
    given: dict[str, Any] = {
        "user": User("nobody"),
        "verb": "list",
        "is_resource_request": True,
        "group": "example.com",
        "version": "v1",
        "resource": "things",
    }
    return Attributes(**(given | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, 'User "nobody" cannot list resource "things" in API group "example.com" at the cluster scope'),
        (
            {"verb": "get", "subresource": "status", "name": "a"},
            'User "nobody" cannot get resource "things/status" in API group "example.com" at the cluster scope',
        ),
        (
            {"namespace": "ns", "group": ""},
            'User "nobody" cannot list resource "things" in API group "" in the namespace "ns"',
        ),
        ({"is_resource_request": False, "verb": "get", "path": "/nope"}, 'User "nobody" cannot get path "/nope"'),
        (
            {"is_resource_request": False, "verb": "get", "path": "/<b>&"},
            'User "nobody" cannot get path "/&lt;b&gt;&amp;"',
        ),
    ],
)
def test_a_message_says_who_cannot_do_what(changes: dict[str, Any], message: str) -> None:
    assert forbidden_message(attributes(**changes)) == message


def test_a_reason_follows_the_message() -> None:
    assert forbidden_message(attributes(), "not today").endswith("at the cluster scope: not today")


def test_a_refused_resource_is_a_403_that_names_it() -> None:
    error = forbidden(attributes(name="a", verb="get"), NO_OPINION)
    assert error.code == 403
    assert error.status["message"] == (
        'things.example.com "a" is forbidden: User "nobody" cannot get resource "things" '
        'in API group "example.com" at the cluster scope'
    )
    assert error.status["details"] == {"name": "a", "group": "example.com", "kind": "things"}


def test_a_refused_path_is_a_403_without_details() -> None:
    refused = attributes(is_resource_request=False, verb="get", path="/nope")
    error = forbidden(refused, Decision(Verdict.DENY, "no"))
    assert error.status["message"] == 'forbidden: User "nobody" cannot get path "/nope": no'
    assert error.status["details"] == {}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", '"plain"'),
        ('say "hi"', r'"say \"hi\""'),
        ("a\\b", r'"a\\b"'),
        ("tab\there\n", r'"tab\there\n"'),
        ("\x00\x1b\x7f", r'"\x00\x1b\x7f"'),
        ("größe €", '"größe €"'),
        ("\u200b", r'"\u200b"'),
        ("\U000e0001", r'"\U000e0001"'),
    ],
)
def test_text_is_quoted_as_go_quotes_it(text: str, shown: str) -> None:
    assert quoted(text) == shown


def test_a_request_without_a_decision_is_a_503() -> None:
    error = forbidden(attributes(name="a"), Decision(Verdict.DENY, "no answer", undecided=True))
    assert (error.status["code"], error.status["reason"]) == (503, "ServiceUnavailable")
    assert error.status["message"] == (
        'it cannot be decided now whether User "nobody" may list resource "things" in API group "example.com" '
        "at the cluster scope: no answer"
    )
    assert error.retry_after == 1
