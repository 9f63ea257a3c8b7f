"""What is asked of authorizers for a request: by whom it is, and for what."""

from __future__ import annotations

from clusterregistry.apiserver.authn.user import User, authenticated
from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.request import Request, attributes_of
from tests.apiserver.server.requests import BareRequest

JANE, JOHN = authenticated(name="jane"), authenticated(name="john")


def asked(user: User, method: str = "PUT", path: str = "/apis/g/v1/things/a/status") -> Request:
    request = BareRequest()
    request.info = request_info.parse(method, path, b"")
    request.user = user
    return request


def test_each_who_asks_for_the_same_is_asked_about() -> None:
    assert [attributes_of(asked(user)).user for user in (JANE, JANE, JOHN, JANE)] == [JANE, JANE, JOHN, JANE]


def test_a_user_of_the_same_name_with_other_groups_is_another_one() -> None:
    for groups in (("a",), ("b",), ("b",)):
        user = authenticated(name="jane", groups=groups)
        assert attributes_of(asked(user)).user is user


def test_each_path_and_method_is_asked_about() -> None:
    requests = [asked(JANE, method, path) for method in ("GET", "PUT") for path in ("/apis/g/v1/things/b", "/x")] * 2
    found = [(each.verb, each.name, each.path) for each in map(attributes_of, requests)]
    things = "/apis/g/v1/things/b"
    assert found == [("get", "b", things), ("get", "", "/x"), ("update", "b", things), ("put", "", "/x")] * 2
