"""Whom a front proxy speaks for, and who may not speak as one."""

from __future__ import annotations

import pytest

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.certificates import Authorities
from clusterregistry.apiserver.authn.request_header import FrontProxy, ProxyHeaders
from clusterregistry.apiserver.authn.union import Union, in_order
from clusterregistry.apiserver.authn.user import User
from tests.apiserver.authn.certificates import END, START, Party, issued, root
from tests.apiserver.authn.requests import FakeRequest

PROXIES, CLIENTS = root("proxies"), root("clients")
PROXY = PROXIES.issue("front-proxy")
SAYS_ADMIN: dict[str, str | list[str]] = {"x-remote-user": "admin", "x-remote-group": "system:masters"}


def front_proxy(*names: str, headers: ProxyHeaders | None = None, at: float = START) -> FrontProxy:
    authorities = Authorities(PROXIES.pem)
    return FrontProxy(authorities, headers=headers or ProxyHeaders(), names=names, clock=lambda: at)


def user_of(headers: dict[str, str | list[str]], *, named: ProxyHeaders | None = None) -> User | None:
    return front_proxy(headers=named).authenticate(FakeRequest(headers, (PROXY.der,)))


def everybody(*names: str) -> Union:
    """All authenticators, with the clock of the machine: certificates are made for now."""
    proxy = FrontProxy(Authorities(PROXIES_NOW.pem), headers=ProxyHeaders(), names=names)
    return in_order(front_proxy=proxy, clients=Authorities(CLIENTS_NOW.pem), tokens=[], anonymous=True)


PROXIES_NOW, CLIENTS_NOW = (root(name, start=0, end=32_000_000_000) for name in ("proxies", "clients"))


def now(signer: Party, name: str) -> tuple[bytes, ...]:
    return (signer.issue(name, start=0, end=32_000_000_000).der,)


def test_a_proxy_says_who_it_is() -> None:
    user = user_of(
        {
            "x-remote-user": "jane",
            "x-remote-uid": "u-1",
            "x-remote-group": ["devs", "", "ops"],
            "x-remote-extra-scopes": ["view", "edit"],
            "x-remote-extra-acme.com%2fproject": "p",
        }
    )
    assert user == User(
        "jane",
        "u-1",
        ("devs", "ops", "system:authenticated"),
        {"scopes": ("view", "edit"), "acme.com/project": ("p",)},
    )


def test_the_first_header_that_says_something_names_the_user_and_all_of_them_groups() -> None:
    named = ProxyHeaders(
        user=("x-user", "x-remote-user"), uid=(), group=("x-group", "x-remote-group"), extra=("x-a-", "x-b-")
    )
    said: dict[str, str | list[str]] = {
        "x-remote-user": "second",
        "x-group": "one",
        "x-remote-group": "two",
        "x-b-key": "from b",
        "x-a-key": "from a",
        "x-remote-uid": "not asked for",
    }
    user = user_of({"x-user": "first", **said}, named=named)
    assert user == User("first", "", ("one", "two", "system:authenticated"), {"key": ("from a", "from b")})
    user = user_of({"x-user": "", **said}, named=named)
    assert user is not None
    assert user.name == "second"


@pytest.mark.parametrize(
    ("rest", "key"),
    [
        ("plain", "plain"),
        ("%e2%82%ac", "€"),
        ("a%20b", "a b"),
        ("%zz", "%zz"),
        ("half%4", "half%4"),
        ("%ff", "%ff"),
        ("", ""),
    ],
)
def test_keys_are_decoded_or_kept(rest: str, key: str) -> None:
    user = user_of({"x-remote-user": "jane", f"x-remote-extra-{rest}": "v"})
    assert user is not None
    assert user.extra == {key: ("v",)}


def test_names_are_utf_8() -> None:
    user = user_of({"x-remote-user": "jürgen".encode().decode("latin-1")})
    assert user is not None
    assert user.name == "jürgen"


@pytest.mark.parametrize("header", ["x-remote-user", "x-remote-uid", "x-remote-group", "x-remote-extra-key"])
def test_what_is_no_text_is_refused(header: str) -> None:
    with pytest.raises(APIError) as raised:
        user_of({"x-remote-user": "jane", header: "\xff"})
    assert raised.value.code == 401


def test_a_proxy_that_passes_on_a_stranger_does_not_make_it_a_user() -> None:
    user = user_of({"x-remote-user": "system:anonymous", "x-remote-group": "system:unauthenticated"})
    assert user == User("system:anonymous", groups=("system:unauthenticated",))
    user = user_of({"x-remote-user": "system:anonymous"})
    assert user == User("system:anonymous")
    user = user_of({"x-remote-user": "jane", "x-remote-group": "system:unauthenticated"})
    assert user == User("jane", groups=("system:unauthenticated",))


def test_a_proxy_that_names_nobody_is_left_to_others() -> None:
    assert user_of({}) is None
    assert user_of({"x-remote-user": "", "x-remote-group": "system:masters"}) is None


def test_without_a_certificate_headers_are_nothing() -> None:
    assert front_proxy().authenticate(FakeRequest(dict(SAYS_ADMIN))) is None


@pytest.mark.parametrize(
    "certificate",
    [CLIENTS.issue("front-proxy"), root("proxies").issue("front-proxy"), issued((), by=PROXIES)],
    ids=["of the clients' authority", "of an authority of the same name", "without a name"],
)
def test_nobody_else_can_pose_as_the_proxy(certificate: Party) -> None:
    with pytest.raises(APIError) as raised:
        front_proxy("front-proxy").authenticate(FakeRequest(dict(SAYS_ADMIN), (certificate.der,)))
    assert raised.value.code == 401


def test_only_proxies_with_an_allowed_name_count_if_names_are_given() -> None:
    request = FakeRequest(dict(SAYS_ADMIN), (PROXIES.issue("another").der,))
    with pytest.raises(APIError):
        front_proxy("front-proxy").authenticate(request)
    for names in [(), ("another",), ("front-proxy", "another")]:
        user = front_proxy(*names).authenticate(request)
        assert user is not None
        assert user.name == "admin"


def test_a_refusal_is_logged_and_a_user_without_such_headers_is_none(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    jane = CLIENTS.issue("jane").der
    assert front_proxy().authenticate(FakeRequest({}, (jane,))) is None
    assert caplog.messages == []
    with pytest.raises(APIError):
        front_proxy().authenticate(FakeRequest(dict(SAYS_ADMIN), (jane,)))
    (message,) = caplog.messages
    assert message.startswith("client certificate refused as that of a front proxy: no authority that counts here")


def test_a_proxy_whose_certificate_has_ended_is_none() -> None:
    with pytest.raises(APIError):
        front_proxy(at=END + 1).authenticate(FakeRequest(dict(SAYS_ADMIN), (PROXY.der,)))


def test_a_certificate_of_the_proxies_authority_is_no_user() -> None:
    with pytest.raises(APIError) as raised:
        everybody().authenticate(FakeRequest({}, now(PROXIES_NOW, "admin")))
    assert raised.value.code == 401


def test_a_users_certificate_stays_its_user_whatever_the_headers_say() -> None:
    user = everybody("jane").authenticate(FakeRequest(dict(SAYS_ADMIN), now(CLIENTS_NOW, "jane")))
    assert isinstance(user, User)
    assert user.name == "jane"
    assert "system:masters" not in user.groups


def test_the_proxys_word_counts_before_its_own_certificate_and_before_a_token() -> None:
    said: dict[str, str | list[str]] = {**SAYS_ADMIN, "authorization": "Bearer wrong"}
    user = everybody("front-proxy").authenticate(FakeRequest(said, now(PROXIES_NOW, "front-proxy")))
    assert isinstance(user, User)
    assert user.name == "admin"


def test_names_and_headers_change_for_those_who_are_connected() -> None:
    proxy = front_proxy("another-name")
    says_jane = FakeRequest({"x-remote-user": "admin", "x-user": "jane"}, (PROXY.der,))
    with pytest.raises(APIError):
        proxy.authenticate(says_jane)
    proxy.replace(headers=ProxyHeaders(user=("x-user",)), names=["front-proxy"])
    assert proxy.authenticate(says_jane) == User("jane", groups=("system:authenticated",))
    assert proxy.are_named
    proxy.replace(headers=ProxyHeaders(user=("x-user",)), names=[])
    assert not proxy.are_named
    assert proxy.authenticate(says_jane) == User("jane", groups=("system:authenticated",))
    proxy.replace(headers=ProxyHeaders(), names=["another-name"])
    with pytest.raises(APIError):
        proxy.authenticate(says_jane)
