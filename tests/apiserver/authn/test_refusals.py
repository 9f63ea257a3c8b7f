"""What is said of credentials that are refused: enough to find the mistake, nothing of a secret."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.bearer import BearerTokens, TokenAuthenticator
from clusterregistry.apiserver.authn.interface import CredentialRefused
from clusterregistry.apiserver.authn.request_header import FrontProxy, ProxyHeaders
from clusterregistry.apiserver.authn.token_file import TokenFile
from clusterregistry.apiserver.authn.token_review import TokenReviews
from clusterregistry.apiserver.authn.x509 import ClientCertificates
from tests.apiserver.authn.certificates import CN, END, START, O, client_root, clients, der
from tests.apiserver.authn.oidc.issuers import ready
from tests.apiserver.authn.requests import FakeRequest, with_authorization


async def asked(token: str, *sources: TokenAuthenticator) -> None:
    outcome = BearerTokens(sources).authenticate(with_authorization(f"Bearer {token}"))
    if isinstance(outcome, Awaitable):
        await outcome


async def said_of_token(token: str, *sources: TokenAuthenticator) -> str:
    with pytest.raises(CredentialRefused) as raised:
        await asked(token, *sources)
    assert raised.value.status == errors.unauthorized().status
    assert token not in raised.value.describe()
    return raised.value.describe()


class Ignorant:
    """A webhook that knows no token."""

    async def ask(self, document: Any) -> dict[str, Any]:
        return {**document, "status": {"authenticated": False}}


async def test_a_token_that_no_source_knows_has_the_word_of_each() -> None:
    party, webhook = await ready(), TokenReviews(Ignorant(), seconds=1.0)
    expected = "it is no JWT as OpenID Connect has them; the authentication webhook does not know it"
    assert await said_of_token("s3cret", party.tokens, webhook) == f"bearer token: {expected}"
    await webhook.close()


def test_the_token_file_says_only_that_it_does_not_have_it() -> None:
    assert object.__new__(TokenFile).refusal("s3cret") == "the token file does not have it"


async def test_a_token_where_none_is_known_says_so() -> None:
    assert await said_of_token("s3cret") == "bearer token: no source of tokens is configured"


async def test_a_token_of_an_issuer_has_the_reason() -> None:
    party = await ready(required_claims={"team": "ops"})
    reasons = {
        "s3cret": "it is no JWT as OpenID Connect has them",
        party.token(iss="https://other.example.com"): "its issuer is not that of --oidc-issuer-url",
        party.token(exp=1): "OpenID Connect: it has expired",
        party.token(): "OpenID Connect: its claim team is not what --oidc-required-claim wants",
        party.token(kid="two"): "OpenID Connect: none of the issuer's keys has signed it",
    }
    for token, reason in reasons.items():
        assert await said_of_token(token, party.tokens) == f"bearer token: {reason}"


def said_of_certificate(*chain: bytes, at: float) -> str:
    with pytest.raises(CredentialRefused) as raised:
        ClientCertificates(clients(), clock=lambda: at).authenticate(FakeRequest({}, chain))
    return raised.value.describe()


def test_a_certificate_is_named_by_its_subject_with_the_reason() -> None:
    said = said_of_certificate(der((O, "dev"), (CN, "jane")), at=END + 1)
    assert said.startswith("client certificate of CN=jane,O=dev as that of a user: ")
    assert (
        said_of_certificate(b"none", at=START) == "client certificate as that of a user: it cannot be read: ValueError"
    )


def test_headers_of_a_front_proxy_that_are_no_text_are_named() -> None:
    proxy = client_root().issue("proxy")
    front = FrontProxy(clients(), headers=ProxyHeaders(), names=(), clock=lambda: START)
    with pytest.raises(CredentialRefused) as raised:
        front.authenticate(FakeRequest({"x-remote-user": "\xff"}, (proxy.der,)))
    assert "not UTF-8" in raised.value.describe()
