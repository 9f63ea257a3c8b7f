"""Impersonation: who may impersonate, and which user the request then has."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import ALLOW, Attributes, Decision, Verdict
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.filters import impersonation
from clusterregistry.apiserver.http.response import Answer, resolve, text_response
from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.server.requests import BareRequest

CALLER = User("caller", groups=("callers", "system:authenticated"))
Headers = tuple[tuple[str, str], ...]


@dataclass
class Rights:
    """Allows what is not listed as forbidden, and writes down what was asked. Every second answer takes time."""

    forbidden: tuple[str, ...] = ()
    reason: str = ""
    asked: list[Attributes] = field(default_factory=list)

    def authorize(self, attributes: Attributes) -> Decision | asyncio.Future[Decision]:
        self.asked.append(attributes)
        named = f"{attributes.resource}/{attributes.name}"
        decision = Decision(Verdict.NO_OPINION, self.reason) if named in self.forbidden else ALLOW
        if len(self.asked) % 2:
            return decision
        later = asyncio.get_running_loop().create_future()
        later.set_result(decision)
        return later


async def sent(rights: Rights, *headers: tuple[str, str]) -> Request:
    """The request as it arrives inside."""
    inside: list[Request] = []

    async def inner(request: Request) -> Answer:
        inside.append(request)
        return text_response("here")

    request = BareRequest(*headers)
    request.user = CALLER
    await resolve(impersonation.filter_for(rights)(inner)(request))
    assert inside == [request]
    return request


async def user_of(*headers: tuple[str, str]) -> User:
    request = await sent(Rights(), *headers)
    assert request.impersonator is CALLER
    assert isinstance(request.user, User)
    return request.user


async def refusal(rights: Rights, *headers: tuple[str, str]) -> APIError:
    with pytest.raises(APIError) as raised:
        await sent(rights, *headers)
    return raised.value


async def test_a_request_without_headers_keeps_its_user() -> None:
    rights = Rights()
    for headers in [(), (("Impersonate-User", ""),), (("X-Impersonate-User", "jane"), ("Impersonate_User", "jane"))]:
        request = await sent(rights, *headers)
        assert request.user is CALLER
        assert request.impersonator is None
    assert rights.asked == []


async def test_all_that_a_user_is_can_be_asked_for() -> None:
    user = await user_of(
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "devs"),
        ("impersonate-group", "ops"),
        ("Impersonate-Uid", "u-1"),
        ("Impersonate-Extra-Scopes", "view"),
        ("IMPERSONATE-EXTRA-SCOPES", "edit"),
        ("Impersonate-Extra-Acme.com%2FProject", "p"),
    )
    assert user == User(
        "jane",
        "u-1",
        ("devs", "ops", "system:authenticated"),
        {"scopes": ("view", "edit"), "acme.com/project": ("p",)},
    )


@pytest.mark.parametrize(
    ("name", "groups", "expected"),
    [
        ("jane", (), ("system:authenticated",)),
        ("jane", ("system:authenticated", "b"), ("system:authenticated", "b")),
        ("jane", ("system:unauthenticated",), ("system:unauthenticated",)),
        ("jane", ("",), ("", "system:authenticated")),
        ("system:anonymous", (), ("system:unauthenticated",)),
        ("system:anonymous", ("a",), ("a", "system:unauthenticated")),
        ("system:anonymous", ("system:unauthenticated",), ("system:unauthenticated",)),
        (
            "system:serviceaccount:ns:sa",
            (),
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        ),
        ("system:serviceaccount:ns:sa", ("x",), ("x", "system:authenticated")),
        ("system:serviceaccount:ns:SA_bad", (), ("system:authenticated",)),
        ("system:serviceaccount:n.s:sa", (), ("system:authenticated",)),
        ("system:serviceaccount:ns:", (), ("system:authenticated",)),
        ("system:serviceaccount:ns", (), ("system:authenticated",)),
        (f"system:serviceaccount:{'n' * 64}:sa", (), ("system:authenticated",)),
        ("system:node:n1", (), ("system:authenticated",)),
    ],
)
async def test_implied_groups_are_added(name: str, groups: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """As recorded from kube-apiserver."""
    user = await user_of(("Impersonate-User", name), *(("Impersonate-Group", group) for group in groups))
    assert (user.name, user.groups) == (name, expected)


async def test_every_part_needs_a_right() -> None:
    rights = Rights()
    await sent(
        rights,
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "u"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-K", "1"),
        ("Impersonate-Extra-K", "2"),
    )
    asked = [(each.group, each.resource, each.subresource, each.name) for each in rights.asked]
    assert asked == [
        ("", "users", "", "jane"),
        ("authentication.k8s.io", "uids", "", "u"),
        ("", "groups", "", "a"),
        ("", "groups", "", "b"),
        ("authentication.k8s.io", "userextras", "k", "1"),
        ("authentication.k8s.io", "userextras", "k", "2"),
    ]
    assert {(each.verb, each.is_resource_request, each.user.name) for each in rights.asked} == {
        ("impersonate", True, "caller")
    }


async def test_a_service_account_is_asked_for_in_its_namespace() -> None:
    rights = Rights()
    await sent(rights, ("Impersonate-User", "system:serviceaccount:ns:sa"))
    (asked,) = rights.asked
    assert (asked.group, asked.resource, asked.namespace, asked.name) == ("", "serviceaccounts", "ns", "sa")


WISH: Headers = (
    ("Impersonate-User", "jane"),
    ("Impersonate-Uid", "u"),
    ("Impersonate-Group", "a"),
    ("Impersonate-Extra-K", "1"),
)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("users/jane", 'users "jane" is forbidden: User "caller" cannot impersonate resource "users" in API group ""'),
        (
            "uids/u",
            (
                'uids.authentication.k8s.io "u" is forbidden: User "caller" cannot impersonate resource "uids" in API '
                'group "authentication.k8s.io"'
            ),
        ),
        ("groups/a", 'groups "a" is forbidden: User "caller" cannot impersonate resource "groups" in API group ""'),
        (
            "userextras/1",
            (
                'userextras.authentication.k8s.io "1" is forbidden: User "caller" cannot impersonate resource '
                '"userextras/k" in API group "authentication.k8s.io"'
            ),
        ),
    ],
)
async def test_without_one_of_the_rights_nothing_is_done(part: str, message: str) -> None:
    error = await refusal(Rights(forbidden=(part,), reason="for a reason"), *WISH)
    assert error.code == 403
    assert error.status["message"] == f"{message} at the cluster scope: for a reason"


async def test_a_service_account_that_is_refused_names_its_namespace() -> None:
    error = await refusal(Rights(forbidden=("serviceaccounts/sa",)), ("Impersonate-User", "system:serviceaccount:n:sa"))
    assert error.status["message"] == (
        'serviceaccounts "sa" is forbidden: User "caller" cannot impersonate resource "serviceaccounts" in API group '
        '"" in the namespace "n"'
    )


@pytest.mark.parametrize(
    ("headers", "what"),
    [
        ((("Impersonate-Group", "devs"),), 'group "devs"'),
        ((("Impersonate-Group", ""),), 'group ""'),
        ((("Impersonate-Uid", "u"),), 'uid "u"'),
        ((("Impersonate-Extra-Scopes", "s"),), 'extra "scopes"'),
        ((("Impersonate-User", ""), ("Impersonate-Uid", "u"), ("Impersonate-Group", "a")), 'uid "u", group "a"'),
    ],
)
async def test_a_uid_or_groups_without_a_user_name_are_a_bad_request(headers: Headers, what: str) -> None:
    error = await refusal(Rights(), *headers)
    assert (error.code, error.reason) == (400, "BadRequest")
    assert error.status["message"] == f"requested {what} without impersonating a user name"


async def test_the_first_of_several_names_counts() -> None:
    user = await user_of(
        ("Impersonate-User", "jane"), ("Impersonate-User", "joe"), ("Impersonate-Uid", "a"), ("Impersonate-Uid", "b")
    )
    assert (user.name, user.uid) == ("jane", "a")


async def test_names_are_utf_8_and_nothing_else() -> None:
    assert (await user_of(("Impersonate-User", "jürgen"))).name == "jürgen"
    request = BareRequest()
    request.headers["impersonate-user"] = "\xff"
    with pytest.raises(APIError) as raised:
        await resolve(impersonation.filter_for(Rights())(_never)(request))
    assert raised.value.code == 400


async def _never(request: Request) -> Answer:
    raise AssertionError(request)


async def test_the_impersonation_headers_are_dropped() -> None:
    request = await sent(Rights(), ("Accept", "text/plain"), *WISH, ("Impersonate-Extra-K", "2"))
    assert not request.has_any_header(impersonation.HEADERS)
    assert request.headers_beginning("impersonate-") == []
    assert request.header("accept") == "text/plain"


def test_an_administrator_may_impersonate_users(client: Client) -> None:
    refused = client.get(CLUSTERS, headers={"Impersonate-User": "viewer"}).refused(403, "Forbidden")
    assert 'User "viewer" cannot list resource "clusters"' in refused["message"]
    client.get(CLUSTERS, headers={"Impersonate-User": "viewer", "Impersonate-Group": "system:masters"}).expect(200)
    client.get(CLUSTERS).expect(200)


@pytest.mark.parametrize("authorization", ["Bearer nobodytoken", None])
def test_others_cannot(client: Client, authorization: str | None) -> None:
    headers = {"Authorization": authorization, "Impersonate-User": "admin"}
    refused = client.get(CLUSTERS, headers=headers).refused(403, "Forbidden")
    assert 'cannot impersonate resource "users"' in refused["message"]
