"""Nothing secret reaches the log, in whatever form it comes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from clusterregistry.api.clusterregistry.credential_patterns import find_credential
from clusterregistry.api.clusterregistry.secret_lint import inspect
from clusterregistry.apimachinery.credentials import ENDINGS, names_credential
from clusterregistry.apiserver.audit.redaction import LONGEST_TEXT, MASK, Masker

SECRET = "s3cr3t-Value"
HEADER = base64.urlsafe_b64encode(b'{"alg":"RS256","kid":"1"}').decode().rstrip("=")
JWT = f"{HEADER}.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJl"
MASKER = Masker(find_credential)

KUBECONFIG = f"""\
apiVersion: v1
kind: Config
users:
- name: jane
  user:
    token: {SECRET}
    client-key-data: {SECRET}
    password: "{SECRET} and more"
"""


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {SECRET}",
        f"bEaReR   {SECRET}",
        f"bearer%20{SECRET}",
        f"Basic {SECRET}",
        KUBECONFIG,
        f"token: |\n  {SECRET}\nname: a",
        f"pwd={SECRET}",
        f"db_pass: '{SECRET}'",
        f"accessKey={SECRET}&a=b",
        f"bearer: {SECRET}",
        f"Authorization: Digest {SECRET} {SECRET}",
        f"authorization: |\n  Digest {SECRET}",
        json.dumps(json.dumps({"authorization": f"Token {SECRET}"})),
        f"token: >-\n    {SECRET}",
        f"access_token={SECRET}&a=b",
        f"--token={SECRET} --v=1",
        f"TOKEN = '{SECRET}'",
        json.dumps({"token": SECRET}),
        json.dumps(json.dumps({"clientSecret": SECRET})),
        json.dumps(json.dumps(json.dumps({"api_key": f'{SECRET}"with a quote'}))),
        f"curl/8.0 {JWT}",
        f"https://jane:{SECRET}@example.com/",
        f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n",
    ],
)
def test_a_text_loses_what_is_secret_in_it(text: str) -> None:
    masked = MASKER.text(text)
    assert "[masked" in masked
    assert SECRET not in masked
    assert JWT not in masked


@pytest.mark.parametrize(
    "text", ["kubectl/v1.36.0 (linux/amd64)", "a token is needed", "metadata.name=a", "secretName: mine", "key: value"]
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert MASKER.text(text) == text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("watch=1&limit=5", "watch=1&limit=5"),
        (f"access_token={SECRET}&watch=1", f"access_token={MASK}&watch=1"),
        (f"a=b&ACCESS%5FTOKEN={SECRET}", f"a=b&ACCESS%5FTOKEN={MASK}"),
        (f"client_secret={SECRET}", f"client_secret={MASK}"),
        (f"x={JWT}", f"x={MASK}"),
        (f"{JWT}", MASK),
        (f"authorization=Bearer+{SECRET}", f"authorization={MASK}"),
        (f"authorization=Bearer%20{SECRET}", f"authorization={MASK}"),
        ("labelSelector=a%3Db", "labelSelector=a%3Db"),
        ("continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NX0", "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NX0"),
    ],
)
def test_a_query_is_judged_parameter_by_parameter(query: str, expected: str) -> None:
    assert MASKER.query(query) == expected


@pytest.mark.parametrize(
    "value",
    [
        {"spec": {"token": SECRET}},
        {"spec": {"authInfo": {"providers": [{"config": {"client-key-data": SECRET, "refreshToken": SECRET}}]}}},
        {"metadata": {"annotations": {"example.com/kubeconfig": KUBECONFIG}}},
        {"metadata": {"annotations": {"last-applied": json.dumps({"spec": {"password": SECRET}})}}},
        [{"op": "add", "path": "/spec/authInfo/providers/0/config/token", "value": SECRET}],
        [{"op": "add", "path": "/spec", "value": {"deep": [{"secret": SECRET}]}}],
        {"properties": [{"name": "api-key", "value": SECRET}]},
        {"spec": {"authInfo": {"providers": [{"config": {f"https://jane:{SECRET}@registry.example.com/": "a"}}]}}},
        {"tokens": [SECRET, [SECRET], {"secret": SECRET, "b": KUBECONFIG}]},
    ],
)
def test_json_loses_what_is_secret_in_it(value: Any) -> None:
    assert SECRET not in json.dumps(MASKER.json(value))


@pytest.mark.parametrize("name", ENDINGS)
def test_the_log_and_the_look_out_for_secrets_go_by_one_list(name: str) -> None:
    assert MASKER.json({f"my-{name}": SECRET}) == {f"my-{name}": MASK}
    assert SECRET not in MASKER.text(f"my-{name}: {SECRET}")
    found = inspect(spec={"authInfo": {"providers": [{"config": {f"my-{name}": SECRET}}]}})
    assert [finding.what for finding in found] == ["a credential"]


def test_json_keeps_everything_else() -> None:
    value = {"metadata": {"name": "a", "generation": 1}, "items": [None, True, 1.5, "text"], "value": "v", "token": ""}
    assert MASKER.json(value) == value


@pytest.mark.parametrize(
    "key",
    [
        *(
            "token",
            "Access-Token",
            "clientSecret",
            "client-key-data",
            "PASSWORD",
            "apiKeys",
            "pwd",
            "dbPass",
            "accessKey",
        ),
        *("token1", "password_2", "secrets-03"),
    ],
)
def test_keys_of_credentials_are_recognised(key: str) -> None:
    assert names_credential(key)


@pytest.mark.parametrize("key", ["tokenFile", "secretName", "token-url", "key", "continue", "resourceVersion"])
def test_keys_of_pointers_are_not(key: str) -> None:
    assert not names_credential(key)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", ["token" * 40_000, "token\\" * 40_000, "token:" + " " * 200_000, "bearer " * 40_000])
def test_masking_a_long_text_takes_no_time_to_speak_of(text: str) -> None:
    assert MASKER.text(text)


def test_a_long_text_is_cut_before_it_is_looked_through() -> None:
    shown = MASKER.text("note " * 100_000)
    assert len(shown) < LONGEST_TEXT + 100
    assert shown.endswith(f"[{500_000 - LONGEST_TEXT} more characters]")


def test_a_credential_far_behind_in_a_long_text_masks_it() -> None:
    key = "-----BEGIN PRIVATE KEY-----"
    assert MASKER.text("note " * 10_000 + key) == "[masked: a private key]"


def test_what_is_assigned_where_a_text_is_cut_is_masked() -> None:
    shown = MASKER.text("x" * (LONGEST_TEXT - 12) + " token: " + "hunter2" * 1000)
    assert "hunt" not in shown
