"""A server that delegates authentication and authorization to an issuer and webhooks, over real HTTPS."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.authn.oidc import issuer as issuers
from clusterregistry.cli import logs
from clusterregistry.registry.main import main
from tests.apiserver.api.clients import Answer
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.server.programs import Program
from tests.remote_servers import Authority, IssuerServer, Received, RemoteServer, kubeconfig, reply, rsa_key, signed

DEADLINE = 40.0
TRUST = {"certificate-authority": "authority.crt"}


@dataclass
class World:
    """A server, and all whom it asks."""

    program: Program
    issuer: IssuerServer
    tokens: RemoteServer
    access: RemoteServer

    def list(self, token: str) -> Answer:
        with self.program.client() as client:
            return client.get(CLUSTERS, headers=bearer(token))

    def asked_about(self) -> dict[str, Any]:
        """What the authorization webhook was asked last."""
        spec: dict[str, Any] = self.access.received[-1].document["spec"]
        return spec


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def eventually(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.1)


def knows_joe(received: Received) -> Any:
    known = received.document["spec"]["token"] == "joes-token"
    user = {"username": "joe", "uid": "7", "groups": ["ops"], "extra": {"a": ["b"]}}
    status = {"authenticated": True, "user": user} if known else {"authenticated": False}
    return reply({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status})


def allows_lists(received: Received) -> Any:
    wanted = received.document["spec"].get("resourceAttributes", {})
    status = {"allowed": wanted.get("verb") == "list", "reason": "only lists"}
    return reply({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("remote")
    authority = Authority(directory)
    with IssuerServer(authority) as issuer, RemoteServer(authority) as tokens, RemoteServer(authority) as access:
        tokens.answer, access.answer = knows_joe, allows_lists
        program = Program(
            directory / "server",
            f"--oidc-issuer-url={issuer.url}",
            "--oidc-client-id=registry",
            "--oidc-groups-claim=groups",
            "--oidc-groups-prefix=oidc:",
            f"--oidc-ca-file={authority.file}",
            f"--authentication-token-webhook-config-file={kubeconfig(directory / 'n', tokens.url, cluster=TRUST)}",
            "--authentication-token-webhook-cache-ttl=0s",
            "--authorization-mode=Webhook,RBAC",
            f"--authorization-webhook-config-file={kubeconfig(directory / 'z', access.url, cluster=TRUST)}",
            "--authorization-webhook-cache-authorized-ttl=0s",
            "--authorization-webhook-cache-unauthorized-ttl=0s",
        )
        with program:
            yield World(program, issuer, tokens, access)
            assert program.stop() == 0
        for trace in ("Traceback", "Unclosed", "never awaited", "never retrieved"):
            assert trace not in program.logged()


def test_a_user_of_the_issuer_is_let_in_and_asked_about(world: World) -> None:
    token = world.issuer.token(sub="jane", groups=["devs"])
    eventually(lambda: world.list(token).status == 200)  # the issuer may not have been found yet
    asked = world.asked_about()
    assert asked["user"] == f"{world.issuer.url}#jane"
    assert asked["groups"] == ["oidc:devs", "system:authenticated"]
    assert asked["resourceAttributes"]["resource"] == "clusters"


def test_what_the_webhook_does_not_allow_is_forbidden_with_its_reason(world: World) -> None:
    with world.program.client() as client:
        answer = client.get(f"{CLUSTERS}/a", headers=bearer("joes-token"))
    assert answer.refused(403, "Forbidden")["message"].endswith("at the cluster scope: only lists")


def test_a_user_of_the_webhook_is_let_in(world: World) -> None:
    assert world.list("joes-token").status == 200
    asked = world.asked_about()
    assert (asked["user"], asked["uid"], asked["extra"]) == ("joe", "7", {"a": ["b"]})
    assert asked["groups"] == ["ops", "system:authenticated"]


@pytest.mark.parametrize("token", ["nobodys-token", "a.b.c", "x" * 40_000])
def test_a_token_that_nobody_knows_is_refused(world: World, token: str) -> None:
    world.list(token).refused(401, "Unauthorized")


def test_static_tokens_are_known_without_asking(world: World) -> None:
    before = len(world.tokens.received)
    assert world.list("admintoken").status == 200
    assert len(world.tokens.received) == before


def test_a_token_signed_by_a_stranger_is_refused(world: World) -> None:
    world.list(signed({"iss": world.issuer.url}, rsa_key(9), kid="one")).refused(401, "Unauthorized")


def test_a_new_key_of_the_issuer_is_found(world: World) -> None:
    world.issuer.keys["two"] = rsa_key(1)
    token = world.issuer.token("two", sub="jill")
    eventually(lambda: world.list(token).status == 200)


def test_what_the_webhooks_know_is_unknown_while_they_are_down(world: World) -> None:
    world.tokens.stop()
    world.list("joes-token").refused(401, "Unauthorized")
    world.tokens.start()
    assert world.list("joes-token").status == 200
    world.access.stop()
    message = world.list("joes-token").refused(403, "Forbidden")["message"]
    assert message.endswith("the authorization webhook does not answer")
    assert world.list("admintoken").status == 200
    world.access.start()
    assert world.list("joes-token").status == 200


def test_a_server_starts_while_its_issuer_is_down(
    tmp_path: Path, serve: Callable[..., InProcessClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuers, "RETRY_SECONDS", 0.05)
    authority = Authority(tmp_path)
    with IssuerServer(authority) as issuer:
        token = issuer.token()
        issuer.stop()
        client = serve(
            f"--oidc-issuer-url={issuer.url}",
            "--oidc-client-id=registry",
            f"--oidc-ca-file={authority.file}",
            "--authorization-mode=AlwaysAllow",
        )
        assert client.get("/readyz").status == 200
        client.get(CLUSTERS, headers=bearer(token)).refused(401, "Unauthorized")
        issuer.start()
        eventually(lambda: client.get(CLUSTERS, headers=bearer(token)).status == 200)


def test_a_webhook_that_must_answer_denies_while_it_is_down(
    tmp_path: Path, serve: Callable[..., InProcessClient]
) -> None:
    with RemoteServer(Authority(tmp_path)) as server:
        path = kubeconfig(tmp_path / "z", server.url, cluster=TRUST)
    flags = ["--authorization-mode=Webhook,AlwaysAllow", f"--authorization-webhook-config-file={path}"]
    client = serve(*flags, "--authorization-webhook-failure-policy=Deny")
    client.get(CLUSTERS, headers=bearer("nobodytoken")).refused(403, "Forbidden")


@pytest.mark.parametrize(
    ("flags", "content", "message"),
    [
        (
            ["--authentication-token-webhook-config-file={}"],
            "current-context: a",
            'the kubeconfig has no context "a"',
        ),
        (
            ["--authorization-mode=Webhook", "--authorization-webhook-config-file={}"],
            "{}",
            "the kubeconfig has no current context",
        ),
        (
            ["--oidc-issuer-url=https://h", "--oidc-client-id=a", "--oidc-ca-file={}"],
            "no certificate",
            "--oidc-ca-file: must be certificates in PEM",
        ),
    ],
)
def test_a_file_with_mistakes_keeps_the_server_from_starting(  # noqa: PLR0913, PLR0917 - fixtures and parameters
    tmp_path: Path,
    flags: list[str],
    content: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "configure", lambda *_: None)  # the process is the tests', and so is its logging
    file = tmp_path / "file"
    file.write_text(content)
    with RemoteServer(Authority(tmp_path)) as port:
        free = port.port
    arguments = [f"--data-dir={tmp_path / 'data'}", f"--secure-port={free}", *(flag.format(file) for flag in flags)]
    assert main(["standalone", *arguments], {}) == 3
    error = capsys.readouterr().err
    assert message in error
    assert "What to do: " in error
