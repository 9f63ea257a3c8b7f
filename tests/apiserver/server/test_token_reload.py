"""A token file that changes under a running server."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from clusterregistry.client.errors import ClientError
from tests.apiserver.api.clients import TOKENS, Answer
from tests.apiserver.api.over_tls import OverTLS
from tests.apiserver.server.programs import Program

PATIENCE = 40.0
"""Seconds in which a server must have noticed: it looks every three, and the machine may be busy."""

WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"


def eventually(true: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until
        time.sleep(0.1)


def ask(client: OverTLS, token: str, *, path: str = "/api") -> Answer:
    return client.exchange("GET", path, headers=[("Authorization", f"Bearer {token}")], body=b"")


def is_good(client: OverTLS, token: str) -> bool:
    """What TokenReview says of a token."""
    question = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    return bool(client.post(REVIEW, question).expect(201)["status"].get("authenticated"))


def test_tokens_come_and_go_on_a_connection_that_is_open(tmp_path: Path) -> None:
    with Program(tmp_path) as program, program.client() as client, program.client() as other:
        tokens = tmp_path / "tokens.csv"
        # The same head twice: the server recognises it on this connection then, without parsing.
        for _ in range(2):
            ask(client, "viewertoken").expect(200)
        assert ask(client, "newtoken").status == 401
        assert is_good(other, "viewertoken")

        tokens.write_text(TOKENS + "newtoken,new,uid-new\n")
        eventually(lambda: ask(client, "newtoken").status == 200)
        assert ask(client, "viewertoken").status == 200

        new = tmp_path / "new.csv"
        new.write_text("".join(line for line in tokens.read_text().splitlines(keepends=True) if "viewer" not in line))
        new.replace(tokens)
        eventually(lambda: ask(client, "viewertoken").status == 401)
        assert not is_good(other, "viewertoken")
        assert ask(client, "newtoken").status == 200

        tokens.write_text("newtoken,new\n")
        eventually(lambda: "the former tokens stay in use" in program.logged())
        assert f"{tokens}:1: a line needs at least 3 columns" in program.logged()
        assert ask(client, "newtoken").status == 200
        metrics = ask(client, "admintoken", path="/metrics").body.decode()
        assert 'clusterregistry_token_file_reloads_total{status="success"} 2.0' in metrics
        assert 'clusterregistry_token_file_reloads_total{status="failure"} 1.0' in metrics
        assert program.stop() == 0


class WithoutTokens(Program):
    """A program that is asked without a token whether it is ready."""

    def _is_ready(self) -> bool:
        try:
            with self.client() as client:
                return client.exchange("GET", "/readyz", headers=[], body=b"").status == 200
        except ClientError:
            return False


def test_the_file_may_be_empty_at_the_start(tmp_path: Path) -> None:
    program = WithoutTokens(tmp_path)
    (tmp_path / "tokens.csv").write_text("")
    with program, program.client() as client:
        assert ask(client, "viewertoken").status == 401
        (tmp_path / "tokens.csv").write_text(TOKENS)
        eventually(lambda: ask(client, "viewertoken").status == 200)


def test_groups_of_a_token_change_with_the_file(tmp_path: Path) -> None:
    def groups(client: OverTLS) -> list[str]:
        headers = [("Authorization", "Bearer viewertoken"), ("Content-Type", "application/json")]
        body = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}'
        answer = client.exchange("POST", WHOAMI, headers=headers, body=body).expect(201)
        found: list[str] = answer["status"]["userInfo"]["groups"]
        return found

    with Program(tmp_path) as program, program.client() as client:
        assert groups(client) == ["viewers", "system:authenticated"]
        (tmp_path / "tokens.csv").write_text(TOKENS.replace('"viewers"', '"editors,viewers"'))
        eventually(lambda: groups(client) == ["editors", "viewers", "system:authenticated"])


def test_a_token_file_that_others_may_read_gives_a_warning_at_the_start(tmp_path: Path) -> None:
    program = Program(tmp_path)
    tokens = tmp_path / "tokens.csv"
    tokens.chmod(0o644)
    with program:
        assert (
            f" WARNING clusterregistry.apiserver.authn.token_file: {tokens} is open to other users" in program.logged()
        )
        assert f"What to do: chmod 600 {tokens}\n" in program.logged()
