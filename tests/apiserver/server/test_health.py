from __future__ import annotations

import re
from typing import Any

import pytest

from tests.apiserver.api.clients import Client
from tests.apiserver.api.in_process import InProcessClient

ENDPOINTS = ["/healthz", "/livez", "/readyz"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_well_is_one_word(client: Client, endpoint: str) -> None:
    answer = client.get(endpoint)
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.header("Content-Type") == "text/plain; charset=utf-8"


@pytest.mark.parametrize("query", ["?verbose", "?verbose=", "?verbose=true", "?verbose=false"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_check_can_be_shown(client: Client, endpoint: str, query: str) -> None:
    answer = client.get(endpoint + query)
    *checks, verdict, nothing = answer.body.decode().split("\n")
    assert answer.status == 200
    assert checks[0] == "[+]ping ok"
    assert all(re.fullmatch(r"\[\+\][a-z-]+ ok", line) for line in checks)
    assert (verdict, nothing) == (f"{endpoint.strip('/')} check passed", "")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_check_can_be_asked_alone(client: Client, endpoint: str) -> None:
    names = re.findall(r"\[\+\]([a-z-]+) ok", client.get(f"{endpoint}?verbose").body.decode())
    assert names
    for name in names:
        answer = client.get(f"{endpoint}/{name}")
        assert (answer.status, answer.body) == (200, b"ok")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_there_is_no_other_check(client: Client, endpoint: str) -> None:
    assert client.get(f"{endpoint}/nothing").status == 404


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_check_can_be_left_out(client: Client, endpoint: str) -> None:
    text = client.get(f"{endpoint}?verbose&exclude=ping").body.decode()
    assert "[+]ping excluded: ok\n" in text
    assert "[+]ping ok" not in text


def test_an_unknown_check_cannot_be_left_out(client: Client) -> None:
    text = client.get("/readyz?verbose&exclude=other&exclude=nope").body.decode()
    assert 'warn: some health checks cannot be excluded: no matches for "nope","other"\n' in text
    assert client.get("/readyz?exclude=nope").body == b"ok"


def stopping(serve: Any) -> InProcessClient:
    client: InProcessClient = serve()
    client.server.server.stopping.requested = True
    return client


def test_a_server_that_stops_is_alive_and_not_ready(serve: Any) -> None:
    client = stopping(serve)
    assert client.get("/livez").status == 200
    answer = client.get("/readyz")
    assert answer.status == 500
    assert b"[+]ping ok\n" in answer.body
    assert b"[-]shutdown failed: reason withheld\n" in answer.body
    assert answer.body.rstrip().endswith(b"readyz check failed")
    assert client.get("/readyz/shutdown").status == 500
    assert client.get("/readyz?exclude=shutdown").status == 200


@pytest.mark.parametrize("path", ["/healthz", "/version"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_they_can_only_be_read(client: Client, path: str, method: str) -> None:
    assert client.request(method, path).status in (404, 405)


def test_the_version(client: Client) -> None:
    version = client.get("/version").expect(200)
    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.")
    assert all(isinstance(value, str) for value in version.values())
    assert client.get("/version/").expect(200) == version
