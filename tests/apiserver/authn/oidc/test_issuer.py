"""Finding an issuer, and keeping up with its keys."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from clusterregistry.apiserver.authn.oidc import authenticator
from clusterregistry.apiserver.authn.oidc.issuer import MAX_KEYS, KeySet, read_keys
from clusterregistry.apiserver.authn.user import User
from tests.apiserver.authn.oidc.issuers import URL, Party, ready
from tests.remote_servers import published, rsa_key, signed


async def test_a_server_starts_without_its_issuer_and_finds_it_later(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    party = Party()
    party.published.failing = True
    token = party.token()
    assert await party.user_of(token) is None
    assert party.published.asked == []  # tokens do not make it look more often
    party.issuer.start()
    assert party.issuer._finding is not None
    await asyncio.wait_for(party.issuer._finding, 20)
    assert await party.user_of(token) is not None
    await party.issuer.close()
    assert party.slept == [10.0]
    assert [record.getMessage() for record in caplog.records] == [
        "a token of the OpenID Connect issuer is refused: the issuer is not found yet",
        f"the OpenID Connect issuer {URL} fails: out of reach; only tokens signed with keys known before are good",
        f"the OpenID Connect issuer {URL} has 1 keys",
        f"the OpenID Connect issuer {URL} answers again",
    ]


async def test_an_issuer_that_was_never_started_can_be_closed() -> None:
    await Party().issuer.close()


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"issuer": f"{URL}/", "jwks_uri": f"{URL}/keys"},
        {"issuer": "https://evil.example.com", "jwks_uri": f"{URL}/keys"},
        {"issuer": URL},
        {"issuer": URL, "jwks_uri": 1},
        {"issuer": URL, "jwks_uri": "http://issuer.example.com/keys"},
        {"issuer": URL, "jwks_uri": "file:///keys"},
    ],
)
async def test_an_issuer_must_call_itself_as_we_do_and_publish_over_https(document: dict[str, Any]) -> None:
    party = Party()
    party.published.document = document
    await party.issuer._fetch()
    assert not party.issuer.keys
    assert party.published.asked == ["/.well-known/openid-configuration"]


async def test_the_document_is_found_below_a_path() -> None:
    party = Party(url=f"{URL}/realms/a/")
    party.published.document["issuer"] = f"{URL}/realms/a/"
    await party.ready()
    assert party.published.asked == ["/realms/a/.well-known/openid-configuration", "/keys"]


async def test_a_token_of_another_issuer_or_kind_is_left_to_others_without_a_call() -> None:
    party = await ready()
    asked = party.published.asked.copy()
    for token in (signed({"iss": "https://other.example.com"}, rsa_key(), kid="new"), "static", "a.b.c", ""):
        assert party.tokens.user_of(token) is None
    assert party.published.asked == asked


async def test_a_new_key_is_fetched_when_a_token_names_it() -> None:
    party = await ready()
    party.published.keys.append(published(rsa_key(1), kid="two"))
    party.clock.now += 5
    new = signed({"iss": URL}, rsa_key(1), kid="two")
    assert await party.user_of(new) is not None
    assert party.published.fetches() == 2
    assert isinstance(party.tokens.user_of(new), User)


async def test_a_key_with_an_old_name_is_fetched_as_well() -> None:
    party = await ready()
    party.published.keys = [published(rsa_key(1), kid="one")]
    party.clock.now += 5
    assert await party.user_of(signed({"iss": URL}, rsa_key(1), kid="one")) is not None


async def test_strangers_cannot_make_us_fetch_again_and_again() -> None:
    party = await ready()
    party.clock.now += 5
    for number in range(20):
        assert await party.user_of(signed({"iss": URL}, rsa_key(1), kid=f"made up {number}")) is None
    assert party.published.fetches() == 2
    party.clock.now += 5
    assert await party.user_of(signed({"iss": URL}, rsa_key(1), kid="made up")) is None
    assert party.published.fetches() == 3


async def test_concurrent_tokens_share_one_fetch_of_keys() -> None:
    party = await ready()
    party.published.keys.append(published(rsa_key(1), kid="two"))
    party.clock.now += 5
    new = [signed({"iss": URL, "sub": f"u{number}"}, rsa_key(1), kid="two") for number in range(5)]
    outcomes = [party.tokens.user_of(token) for token in new]
    users = await asyncio.gather(*(each for each in outcomes if isinstance(each, Awaitable)))
    assert [user.name for user in users if user] == ["u0", "u1", "u2", "u3", "u4"]
    assert party.published.fetches() == 2


async def test_keys_are_kept_while_the_issuer_is_down() -> None:
    party = await ready()
    party.published.failing = True
    party.clock.now += 5
    assert await party.user_of(signed({"iss": URL}, rsa_key(1), kid="two")) is None
    assert await party.user_of(party.token()) is not None


@pytest.mark.parametrize("keys", [[], [{"kty": "RSA"}], ["x"], [{}] * (MAX_KEYS + 1)])
async def test_keys_are_kept_when_the_issuer_publishes_none(keys: list[Any]) -> None:
    party = await ready()
    party.published.keys = keys
    party.clock.now += 5
    assert await party.user_of(signed({"iss": URL}, rsa_key(1), kid="two")) is None
    assert await party.user_of(party.token()) is not None


async def test_a_token_is_checked_once_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    party = await ready()
    token = party.token(exp=party.clock.now + 60)
    user = await party.user_of(token)
    monkeypatch.setattr(KeySet, "has_signed", None)
    assert party.tokens.user_of(token) is user
    party.clock.now += 60
    assert party.tokens.user_of(token) is None


async def test_a_key_that_is_taken_back_ends_its_tokens() -> None:
    party = await ready()
    token = party.token()
    assert await party.user_of(token) is not None
    party.published.keys = [published(rsa_key(1), kid="two")]
    party.clock.now += 5
    assert await party.user_of(signed({"iss": URL}, rsa_key(1), kid="two")) is not None
    assert await party.user_of(token) is None


async def test_a_signed_token_without_a_user_is_refused() -> None:
    party = await ready()
    assert await party.user_of(party.token(sub="")) is None
    party.published.keys.append(published(rsa_key(1), kid="two"))
    party.clock.now += 5
    assert await party.user_of(signed({"iss": URL, "sub": ""}, rsa_key(1), kid="two")) is None


async def test_the_memory_is_bounded_and_holds_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authenticator, "MAX_CACHED", 8)
    party = await ready()
    for number in range(20):
        assert await party.user_of(party.token(sub=f"u{number}")) is not None
    assert len(party.tokens._users) <= 8
    assert all(len(key) == 32 for key in party.tokens._users._kept)


async def test_the_same_refusal_is_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    party = await ready()
    caplog.set_level(logging.INFO)
    caplog.clear()
    for number in range(5):
        await party.user_of(party.token(exp=number))
        await party.user_of(party.token(aud=f"other {number}"))
    assert len(caplog.records) == 2


@pytest.mark.parametrize("document", [{}, {"keys": {}}, {"keys": "x"}])
def test_what_is_no_set_of_keys_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="it is no set of keys"):
        read_keys(document, ["RS256"])


@pytest.mark.parametrize(
    "unusable",
    [
        published(rsa_key(bits=1024), kid="one"),
        published(rsa_key(), kid=1),
        {**published(rsa_key()), "n": "!"},
        {**published(rsa_key()), "e": 3},
        {**published(ec.generate_private_key(ec.SECP256R1())), "x": "AA"},
        published(ec.generate_private_key(ec.SECP256K1())),
        {"kty": ["RSA"]},
        {"kty": "EC", "crv": ["P-256"]},
        {"kty": "OKP", "crv": "Ed25519", "x": "AA"},
    ],
)
def test_an_unusable_key_is_left_out(unusable: dict[str, Any]) -> None:
    keys = read_keys({"keys": [unusable, published(rsa_key(), kid="one")]}, ["RS256", "ES256"])
    assert len(keys) == 1


def test_a_private_key_among_the_published_is_not_read() -> None:
    import jwt  # noqa: PLC0415

    private = jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key(), as_dict=True)
    (key,) = read_keys({"keys": [private]}, ["RS256"])._keys
    assert not hasattr(key.key.key, "private_bytes")
