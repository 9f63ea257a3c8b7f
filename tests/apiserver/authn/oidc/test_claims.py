from __future__ import annotations

import logging
from typing import Any

import pytest

from clusterregistry.apiserver.authn.oidc import claims
from clusterregistry.apiserver.authn.oidc.claims import Refused
from clusterregistry.apiserver.authn.oidc.settings import IssuerSettings
from clusterregistry.apiserver.authn.user import User

URL = "https://issuer.example.com"
NOW = 1_800_000_000.0
GOOD = {"iss": URL, "aud": "registry", "sub": "jane", "exp": NOW + 60}


def settings(**changed: Any) -> IssuerSettings:
    return IssuerSettings(**{"url": URL, "client_id": "registry", **changed})


def checked(**changed: Any) -> float:
    return claims.check({**GOOD, **changed}, settings(), now=NOW)


def user(*, of: dict[str, Any], **changed: Any) -> User:
    return claims.user_of({**GOOD, **of}, settings(**changed))


HALF = "\ud800"
"""Of a character: JSON can escape it, and UTF-8 has no form for it."""


@pytest.mark.parametrize("sub", [HALF, f"jane{HALF}", f"{HALF}\udc00"[::-1]])
def test_half_a_character_is_no_user_name(sub: str) -> None:
    with pytest.raises(Refused, match="its claim sub is no user name"):
        user(of={"sub": sub})


@pytest.mark.parametrize("groups", [HALF, ["good", f"{HALF}bad"]])
def test_half_a_character_is_no_group(groups: object) -> None:
    with pytest.raises(Refused, match="its claim groups is neither a text nor a list of them"):
        user(of={"groups": groups}, groups_claim="groups")


def test_half_a_character_is_no_id_of_a_token() -> None:
    assert user(of={"jti": HALF}).extra == {}


@pytest.mark.parametrize(
    "change",
    [
        {"aud": ["other", "registry"]},
        {"aud": ["registry"]},
        {"exp": NOW + 0.5},
        {"exp": int(NOW) + 1},
        {"nbf": NOW},
        {"nbf": NOW + 60},
        {"iat": NOW + 9999},
    ],
)
def test_a_token_for_us_is_good_until_it_ends(change: dict[str, Any]) -> None:
    assert checked(**change) == change.get("exp", NOW + 60)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"iss": f"{URL}/"}, "another issuer's"),
        ({"iss": URL.upper()}, "another issuer's"),
        ({"iss": [URL]}, "another issuer's"),
        ({"iss": None}, "another issuer's"),
        ({"aud": "other"}, "its audience is not --oidc-client-id"),
        ({"aud": "registry2"}, "its audience is not --oidc-client-id"),
        ({"aud": "a registry b"}, "its audience is not --oidc-client-id"),
        ({"aud": ["other", "REGISTRY"]}, "its audience is not --oidc-client-id"),
        ({"aud": []}, "its audience is not --oidc-client-id"),
        ({"aud": [["registry"]]}, "its audience is not --oidc-client-id"),
        ({"aud": {"registry": 1}}, "its audience is not --oidc-client-id"),
        ({"aud": None}, "its audience is not --oidc-client-id"),
        ({"exp": None}, "it has no exp"),
        ({"exp": NOW}, "it has expired"),
        ({"exp": NOW - 1}, "it has expired"),
        ({"exp": -1}, "it has expired"),
        ({"exp": str(NOW + 60)}, "its exp is no time"),
        ({"exp": True}, "its exp is no time"),
        ({"exp": float("inf")}, "its exp is no time"),
        ({"exp": 10**400}, "its exp is no time"),
        ({"exp": [NOW + 60]}, "its exp is no time"),
        ({"nbf": NOW + 61}, "it is not good yet (nbf)"),
        ({"nbf": "soon"}, "its nbf is no time"),
    ],
)
def test_what_is_not_for_us_or_not_good_now_is_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused) as raised:
        checked(**change)
    assert str(raised.value) == why


def test_a_user_is_named_by_the_claim_and_the_prefix() -> None:
    assert user(of={}).name == "jane"
    assert user(of={"upn": "j"}, username_claim="upn", username_prefix="oidc:").name == "oidc:j"


def test_a_prefix_is_put_before_names_that_try_to_be_others() -> None:
    found = user(
        of={"sub": "system:admin", "groups": ["system:masters", "oidc:x"]},
        username_prefix="oidc:",
        groups_claim="groups",
        groups_prefix="oidc:",
    )
    assert found.name == "oidc:system:admin"
    assert found.groups == ("oidc:system:masters", "oidc:oidc:x", "system:authenticated")


@pytest.mark.parametrize("name", [None, "", 1, ["jane"], {"a": "jane"}, True])
def test_a_name_must_be_text(name: Any) -> None:
    with pytest.raises(Refused, match="its claim sub is no user name"):
        user(of={"sub": name}, username_prefix="oidc:")


@pytest.mark.parametrize("verified", [{}, {"email_verified": True}])
def test_an_email_that_is_verified_or_says_nothing_is_a_name(verified: dict[str, Any]) -> None:
    assert user(of={"email": "j@example.com", **verified}, username_claim="email").name == "j@example.com"


@pytest.mark.parametrize("verified", [False, None, "true", 1, "false"])
def test_an_email_that_is_not_verified_is_refused(verified: Any) -> None:
    with pytest.raises(Refused, match="its email is not verified"):
        user(of={"email": "j@example.com", "email_verified": verified}, username_claim="email")


def test_another_claim_needs_no_verified_email() -> None:
    assert user(of={"email_verified": False}).name == "jane"


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ({"groups": "a"}, ["a"]),
        ({"groups": ["a", "", "b"]}, ["a", "b"]),
        ({"groups": []}, []),
        ({"groups": None}, []),
        ({}, []),
    ],
)
def test_groups_are_a_text_or_a_list(groups: dict[str, Any], expected: list[str]) -> None:
    assert user(of=groups, groups_claim="groups").groups == (*expected, "system:authenticated")


def test_no_claim_no_groups() -> None:
    assert user(of={"groups": ["a"], "": ["b"]}).groups == ("system:authenticated",)


@pytest.mark.parametrize("groups", [0, 1, {}, {"a": 1}, ["a", 1], [["a"]], False])
def test_other_groups_are_refused(groups: Any) -> None:
    with pytest.raises(Refused, match="its claim groups is neither a text nor a list of them"):
        user(of={"groups": groups}, groups_claim="groups")


@pytest.mark.parametrize(("names", "warned"), [({"groups": "src"}, True), ({"other": "src"}, False), ("groups", False)])
def test_distributed_groups_are_not_fetched(names: Any, warned: bool, caplog: pytest.LogCaptureFixture) -> None:  # noqa: FBT001
    caplog.set_level(logging.WARNING)
    sources = {"src": {"endpoint": "https://evil.example.com"}}
    found = user(of={"_claim_names": names, "_claim_sources": sources}, groups_claim="groups")
    assert found.groups == ("system:authenticated",)
    assert ("distributed" in caplog.text) is warned


def test_required_claims_must_be_there_as_they_are_required() -> None:
    required = {"tenant": "a", "level": "2"}
    assert user(of={"tenant": "a", "level": "2"}, required_claims=required).name == "jane"
    for wrong in ({}, {"tenant": "a"}, {"tenant": "a", "level": 2}, {"tenant": ["a"], "level": "2"}):
        with pytest.raises(Refused, match="--oidc-required-claim"):
            user(of=wrong, required_claims=required)


@pytest.mark.parametrize(("identifier", "known"), [("x1", True), ("", False), (None, False), (7, False)])
def test_the_name_of_a_token_is_kept_for_the_records(identifier: Any, known: bool) -> None:  # noqa: FBT001
    key = "authentication.kubernetes.io/credential-id"
    assert user(of={"jti": identifier}).extra == ({key: (f"JTI={identifier}",)} if known else {})
