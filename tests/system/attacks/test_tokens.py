"""Tokens in odd encodings: only the token itself is the token."""

from __future__ import annotations

import base64

import pytest

from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.api.objects import CLUSTERS
from tests.system.attacks.raw import Raw

GOOD = ADMIN_TOKEN.encode()
PATH = CLUSTERS.encode()

ODD = [
    b"Bearer " + GOOD + b"=",
    b"Bearer " + GOOD + b"==",
    b"Bearer " + base64.b64encode(GOOD),
    b"Bearer " + GOOD.upper(),
    b"Bearer " + GOOD[:-1],
    b"Bearer " + GOOD + b"x",
    b"Bearer " + GOOD + b",other",
    b"Bearer " + GOOD + b", Bearer other",
    b"Bearer other, Bearer " + GOOD,
    b"Bearer other " + GOOD,
    b"Bearer \xef\xbb\xbf" + GOOD,
    b"Bearer " + GOOD + b"\xc2\xa0",
    b"Bearer " + GOOD + b"\xff",
    b"Bearer " + GOOD.replace(b"a", b"\xd0\xb0"),
    "Bearer \uff41\uff44\uff4d\uff49\uff4etoken".encode(),
    b"Bearer " + GOOD.replace(b"a", b"%61"),
    b"Bearer '" + GOOD + b"'",
    b'Bearer "' + GOOD + b'"',
    b"Bearer *",
    b"Bearer %",
    b"Bearer " + b"x" * 100_000,
    b"Bearer " + GOOD + b"x" * 100_000,
]
NO_TOKEN = [
    b"",
    b"Bearer",
    b"Bearer ",
    b"Bearer  " + GOOD,
    b"Bearer\t" + GOOD,
    b"Bearer:" + GOOD,
    b"Bearer=" + GOOD,
    GOOD,
    b"Basic " + base64.b64encode(b"admin:" + GOOD),
    b"Basic " + base64.b64encode(GOOD),
    b"Token " + GOOD,
    b"bearer\xc2\xa0" + GOOD,
    b"B\xc4\x93arer " + GOOD,
]
UNREADABLE = [
    b"Bearer " + GOOD + b"\x00",
    b"Bearer \x00" + GOOD,
    b"Bearer\x00 " + GOOD,
    b"Bearer " + GOOD + b"\r",
    b"Bearer " + GOOD[:4] + b"\n" + GOOD[4:],
]


def status_with(raw: Raw, *values: bytes) -> int:
    return raw.ask(PATH, token="", headers=[b"Authorization: " + value for value in values]).status


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value[:40]))
def test_an_odd_token_authenticates_no_user(raw: Raw, value: bytes) -> None:
    assert status_with(raw, value) == 401


@pytest.mark.parametrize("value", NO_TOKEN, ids=lambda value: repr(value[:40]))
def test_a_request_without_a_token_is_anonymous(raw: Raw, value: bytes) -> None:
    assert status_with(raw, value) == 403


@pytest.mark.parametrize("value", UNREADABLE, ids=repr)
def test_a_header_with_control_characters_is_refused(raw: Raw, value: bytes) -> None:
    assert status_with(raw, value) == 400


def test_of_two_headers_the_first_counts(raw: Raw) -> None:
    """As under kube-apiserver: a second one never adds rights to the first."""
    assert status_with(raw, b"Bearer wrong", b"Bearer " + GOOD) == 401
    assert status_with(raw, b"Bearer nobodytoken", b"Bearer " + GOOD) == 403
    assert status_with(raw, b"", b"Bearer " + GOOD) == 403
    assert status_with(raw, b"Bearer " + GOOD, b"Bearer wrong") == 200


@pytest.mark.parametrize("name", [b"Authorization ", b" Authorization", b"X-Authorization", b"Authorization\x00"])
def test_no_other_header_has_a_token(raw: Raw, name: bytes) -> None:
    reply = raw.ask(PATH, token="", headers=[name + b": Bearer " + GOOD])
    assert reply.status in {400, 403}


@pytest.mark.parametrize(
    "query", [b"access_token=" + GOOD, b"token=" + GOOD, b"authorization=Bearer%20" + GOOD], ids=repr
)
def test_a_token_in_the_query_is_none(raw: Raw, query: bytes) -> None:
    """It would end up in the logs of everything on the way."""
    assert raw.ask(PATH + b"?" + query, token="").status == 403
