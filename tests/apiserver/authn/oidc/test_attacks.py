"""Forged tokens, and tokens that differ from a valid one in a single thing."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from clusterregistry.apiserver.authn import bearer
from clusterregistry.apiserver.authn.oidc import claims
from tests.apiserver.authn.oidc.issuers import URL, Party, ready
from tests.remote_servers import encoded, published, rsa_key, signed

P256, P384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
ALL = ("RS256", "PS256", "ES256", "ES384")


def parts(token: str) -> tuple[str, str, str]:
    header, payload, signature = token.split(".")
    return header, payload, signature


def with_header(token: str, **members: Any) -> str:
    """The same token under another header, with the old signature."""
    _, payload, signature = parts(token)
    return f"{encoded(json.dumps(members).encode())}.{payload}.{signature}"


async def refused(party: Party, token: str) -> bool:
    return await party.user_of(token) is None


async def test_the_token_that_the_others_differ_from_is_good() -> None:
    party = await ready()
    user = await party.user_of(party.token())
    assert user is not None
    assert user.name == "jane"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, "HS256", "RS384", "rs256", ["RS256"], {}, 1])
async def test_another_algorithm_in_the_header_is_refused(algorithm: Any) -> None:
    party = await ready()
    assert await refused(party, with_header(party.token(), alg=algorithm, kid="one"))


async def test_a_lone_surrogate_is_no_user_name() -> None:
    """JSON can escape it, but no response, header or log can encode it."""
    party = await ready(groups_claim="groups")
    assert not await refused(party, party.token(sub="jane", groups=["g"]))
    assert await refused(party, party.token(sub="\ud800"))
    assert await refused(party, party.token(sub="jane", groups=["g", "\udfff"]))


async def test_a_token_without_a_signature_is_refused() -> None:
    party = await ready()
    _, payload, _ = parts(party.token())
    header = encoded(b'{"alg":"none","kid":"one"}')
    for token in (f"{header}.{payload}.", f"{header}.{payload}", f"{header}.{payload}.AA"):
        assert await refused(party, token)


@pytest.mark.parametrize("form", [PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1])
async def test_the_public_key_is_no_shared_secret(form: PublicFormat) -> None:
    party = await ready()
    _, payload, _ = parts(party.token())
    for encoding in (Encoding.PEM, Encoding.DER):
        secret = rsa_key().public_key().public_bytes(encoding, form)
        signing = encoded(b'{"alg":"HS256","kid":"one"}') + "." + payload
        signature = hmac.new(secret, signing.encode(), hashlib.sha256).digest()
        assert await refused(party, f"{signing}.{encoded(signature)}")


async def test_a_shared_secret_among_the_keys_is_not_used() -> None:
    secret = {"kty": "oct", "k": encoded(b"x" * 32), "kid": "secret", "use": "sig"}
    party = await ready(published(rsa_key(), kid="one"), secret)
    token = jwt.encode({"iss": URL, "aud": "registry", "sub": "x", "exp": 9e9}, b"x" * 32, headers={"kid": "secret"})
    assert await refused(party, token)


async def test_a_key_is_used_with_algorithms_of_its_own_kind_only() -> None:
    party = await ready(
        published(rsa_key(), kid="one"), published(P256, kid="p256"), published(P384, kid="p384"), algorithms=ALL
    )
    good = signed({"iss": URL}, P256, algorithm="ES256", kid="p256")
    assert not await refused(party, good)
    assert not await refused(party, signed({"iss": URL}, P384, algorithm="ES384", kid="p384"))
    for kid in ("one", "p384"):
        assert await refused(party, signed({"iss": URL}, P256, algorithm="ES256", kid=kid))
    assert await refused(party, with_header(good, alg="ES384", kid="p256"))


async def test_a_key_that_is_for_one_algorithm_is_not_used_with_another() -> None:
    party = await ready(published(rsa_key(), kid="one", alg="RS256"), algorithms=ALL)
    assert not await refused(party, party.token())
    assert await refused(party, signed({"iss": URL}, rsa_key(), algorithm="PS256", kid="one"))


async def test_a_key_for_encryption_signs_nothing() -> None:
    party = await ready(published(rsa_key(1), kid="other"), published(rsa_key(), kid="one", use="enc"))
    assert await refused(party, party.token())


@pytest.mark.parametrize("kid", ["other", "one ", "../one", "one\x00", "' OR 1=1", "/dev/null"])
async def test_a_token_must_be_signed_by_the_key_that_it_names(kid: str) -> None:
    party = await ready(published(rsa_key(), kid="one"), published(rsa_key(1), kid="other"))
    assert await refused(party, party.token(kid=kid))


async def test_two_keys_of_one_name_are_both_tried() -> None:
    party = await ready(published(rsa_key(1), kid="one"), published(rsa_key(), kid="one"))
    assert not await refused(party, party.token())


async def test_a_token_that_names_no_key_is_tried_with_all() -> None:
    party = await ready(published(rsa_key(1), kid="other"), published(rsa_key(), kid="one"))
    assert not await refused(party, signed({"iss": URL}, rsa_key()))
    assert await refused(party, signed({"iss": URL}, rsa_key(2)))


@pytest.mark.parametrize("kid", [1, None, ["one"], {"a": "one"}])
async def test_the_name_of_a_key_must_be_text(kid: Any) -> None:
    party = await ready()
    assert await refused(party, with_header(party.token(), alg="RS256", kid=kid))


async def test_keys_in_the_token_itself_count_nothing() -> None:
    party, stranger = await ready(), rsa_key(1)
    headers: list[dict[str, Any]] = [
        {"jwk": published(stranger, kid="one")},
        {"jku": "https://evil.example.com/keys"},
        {"x5u": "https://evil.example.com/chain"},
        {"x5c": ["MIIB"]},
    ]
    before = party.published.asked.copy()
    for header in headers:
        for name in ({}, {"kid": "one"}):
            assert await refused(party, signed({"iss": URL}, stranger, **header, **name))
        assert not await refused(party, signed({"iss": URL}, rsa_key(), kid="one", **header))
    assert party.published.asked == before


@pytest.mark.parametrize("header", [{"crit": ["exp"]}, {"crit": []}, {"crit": ["b64"], "b64": True}, {"b64": True}])
async def test_an_extension_that_must_be_understood_is_refused(header: dict[str, Any]) -> None:
    party = await ready()
    signing = encoded(json.dumps({"alg": "RS256", "kid": "one", **header}).encode()) + "." + parts(party.token())[1]
    algorithm = jwt.get_algorithm_by_name("RS256")
    signature = encoded(algorithm.sign(signing.encode(), rsa_key()))
    assert await refused(party, f"{signing}.{signature}")


def raw(payload: bytes, header: bytes = b'{"alg":"RS256","kid":"one"}') -> str:
    """A token over any bytes, signed well."""
    signing = f"{encoded(header)}.{encoded(payload)}"
    return f"{signing}.{encoded(jwt.get_algorithm_by_name('RS256').sign(signing.encode(), rsa_key()))}"


def payload(more: bytes = b"") -> bytes:
    return b'{"iss":"%s","aud":"registry","sub":"jane","exp":9000000000%s}' % (URL.encode(), more)


@pytest.mark.parametrize(
    "content",
    [
        payload(b',"sub":"admin"'),
        payload(b',"iss":"https://other.example.com"'),
        payload(b',"a":{"b":1,"b":2}'),
        payload(b',"a":NaN'),
        payload(b',"a":-Infinity'),
        payload(b',"a":"\xff"'),
        payload(b',"a":' + b"[" * 8000 + b"]" * 8000),
        payload(b',"a":' + b"9" * 5000),
        b"[]",
        b"null",
        b"not json",
        payload() + b"{}",
        payload().decode().encode("utf-16"),
    ],
)
async def test_claims_that_could_be_read_in_two_ways_are_none(content: bytes) -> None:
    party = await ready()
    assert not await refused(party, raw(payload()))
    assert await refused(party, raw(content))
    assert claims.parse(raw(content)) is None


async def test_a_header_with_a_name_twice_is_none() -> None:
    party = await ready()
    assert await refused(party, raw(payload(), b'{"alg":"none","alg":"RS256","kid":"one"}'))


@pytest.mark.parametrize("change", ["{}=", "{}==", " {}", "{}\n", "{}.", ".{}", "{}.x", "{}é", "{}%"])
async def test_odd_encodings_of_a_good_token_are_refused(change: str) -> None:
    party = await ready()
    assert await refused(party, change.format(party.token()))


async def test_only_one_spelling_of_a_token_is_good() -> None:
    """The last character of a part may hold bits that mean nothing."""
    party = await ready()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for index in range(3):
        split = list(parts(party.token()))
        last = alphabet.index(split[index][-1])
        for other in range(64):
            if other != last:
                changed = [*split]
                changed[index] = split[index][:-1] + alphabet[other]
                assert await refused(party, ".".join(changed))


async def test_a_standard_alphabet_is_refused() -> None:
    party = await ready()
    header, content, signature = parts(party.token())
    assert await refused(party, f"{header}.{content}.{signature[:-4]}+/+/")


async def test_a_huge_token_is_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    party = await ready()
    token = party.token(padding="x" * bearer.MAX_TOKEN)
    monkeypatch.setattr(claims, "parse", None)
    assert await refused(party, token)


async def test_a_changed_claim_breaks_the_signature() -> None:
    party = await ready()
    header, _, signature = parts(party.token())
    assert await refused(party, f"{header}.{encoded(payload())}.{signature}")


async def test_a_token_in_a_token_is_none() -> None:
    party = await ready()
    assert await refused(party, raw(party.token().encode(), b'{"alg":"RS256","kid":"one","cty":"JWT"}'))
