from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.webhooks import config_file
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.webhook import MAX_ANSWER, Documents, Webhook
from clusterregistry.client.rest_config import Pem
from tests.remote_servers import PATIENCE, Authority, Received, RemoteServer, Reply, kubeconfig, reply

AGENT = "tests/1"
QUESTION = {"kind": "Question"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def server(authority: Authority) -> Iterator[RemoteServer]:
    with RemoteServer(authority) as started:
        yield started


class Pauses:
    """A sleep that takes no time and records its pauses."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Hooks:
    """Makes webhooks, and closes them."""

    def __init__(self, authority: Authority) -> None:
        self.authority, self.made, self.pauses = authority, list[Webhook](), Pauses()

    def make(self, server: str, *, patience: float = PATIENCE, **members: Any) -> Webhook:
        members.setdefault("cluster", {"certificate-authority": "authority.crt"})
        path = kubeconfig(self.authority.directory / "hook.kubeconfig", server, **members)
        hook = Webhook(config_file.load(path, user_agent=AGENT), patience=patience, sleep=self.pauses)
        self.made.append(hook)
        return hook


@pytest.fixture
async def hooks(authority: Authority) -> AsyncIterator[Hooks]:
    made = Hooks(authority)
    yield made
    for hook in made.made:
        await hook.close()
    await silence()


async def silence() -> None:
    """Waits until no connection is left: one that a test has broken off takes a moment to end."""
    loop: Any = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE):
        while len(loop._selector.get_map()) > 1:  # noqa: ASYNC110 - the loop's own pipe is left
            await asyncio.sleep(0.01)


async def failure(hook: Webhook) -> str:
    with pytest.raises(CallFailed) as raised:
        await hook.ask(QUESTION)
    return str(raised.value)


async def test_a_question_is_posted_as_json(server: RemoteServer, hooks: Hooks) -> None:
    server.answer = lambda received: reply({"got": received.document})
    hook = hooks.make(f"{server.url}/review?a=b", user={"token": "secret"})
    assert await hook.ask(QUESTION) == {"got": QUESTION}
    (received,) = server.received
    assert (received.method, received.path) == ("POST", "/review?a=b")
    assert received.headers["content-type"] == "application/json"
    assert received.headers["authorization"] == "Bearer secret"
    assert received.headers["user-agent"] == AGENT


@pytest.mark.parametrize(
    ("path", "expected"), [("", "/"), ("/", "/"), ("/review", "/review"), ("/review/", "/review/")]
)
async def test_the_path_of_a_webhook_is_used_as_it_is(
    server: RemoteServer, hooks: Hooks, path: str, expected: str
) -> None:
    await hooks.make(server.url + path).ask(QUESTION)
    assert server.received[0].path == expected


async def test_a_token_file_is_read_again_when_it_changes(server: RemoteServer, hooks: Hooks) -> None:
    token = hooks.authority.directory / "token"
    token.write_text("one")
    hook = hooks.make(server.url, user={"tokenFile": "token"})
    await hook.ask(QUESTION)
    token.write_text("another")
    await hook.ask(QUESTION)
    assert [received.headers["authorization"] for received in server.received] == ["Bearer one", "Bearer another"]


async def test_a_webhook_that_requests_a_certificate_gets_ours(authority: Authority, hooks: Hooks) -> None:
    authority.client("registry")
    with RemoteServer(authority, mutual=True) as server:
        hook = hooks.make(server.url, user={"client-certificate": "client.crt", "client-key": "client.key"})
        await hook.ask(QUESTION)
        assert server.received[0].certificate is not None
        assert "registry" in str(server.received[0].certificate["subject"])


async def test_the_name_in_the_certificate_may_be_another_than_the_address(authority: Authority, hooks: Hooks) -> None:
    with RemoteServer(authority, names=("hook.example.com",)) as server:
        trusted = {"certificate-authority": "authority.crt"}
        await hooks.make(server.url, cluster={**trusted, "tls-server-name": "hook.example.com"}).ask(QUESTION)
        assert "certificate" in (await failure(hooks.make(server.url, cluster=trusted))).lower()
        assert len(server.received) == 1


async def test_a_webhook_without_a_trusted_certificate_gets_no_review(server: RemoteServer, hooks: Hooks) -> None:
    assert "certificate" in (await failure(hooks.make(server.url, cluster={}))).lower()
    assert server.received == []
    assert hooks.pauses.seconds == []


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_may_pass_is_tried_five_times(server: RemoteServer, hooks: Hooks, status: int) -> None:
    server.answer = lambda _: Reply(status=status)
    assert await failure(hooks.make(server.url)) == f"it answers with status {status}"
    assert len(server.received) == 5
    expected = [0.5, 0.75, 1.125, 1.6875]
    assert all(wanted <= waited <= wanted * 1.2 for wanted, waited in zip(expected, hooks.pauses.seconds, strict=True))


async def test_a_try_that_succeeds_is_the_last(server: RemoteServer, hooks: Hooks) -> None:
    replies = iter([Reply(status=500), Reply(hang_up=True), reply({"a": 1})])
    server.answer = lambda _: next(replies)
    assert await hooks.make(server.url).ask(QUESTION) == {"a": 1}
    assert len(server.received) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_a_refusal_is_not_tried_again(server: RemoteServer, hooks: Hooks, status: int) -> None:
    server.answer = lambda _: Reply(status=status)
    assert await failure(hooks.make(server.url)) == f"it answers with status {status}"
    assert len(server.received) == 1


async def test_a_redirect_is_not_followed(server: RemoteServer, hooks: Hooks) -> None:
    server.answer = lambda _: Reply(status=307, headers={"location": f"{server.url}/elsewhere"})
    assert "redirect" in await failure(hooks.make(server.url))
    assert [received.path for received in server.received] == ["/"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "its answer is no JSON object of a usual depth"),
        (b"<html>", "its answer is no JSON object of a usual depth"),
        (b"\xff", "its answer is no JSON object of a usual depth"),
        (b"[]", "its answer is no JSON object of a usual depth"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "its answer is no JSON object of a usual depth"),
        (b"x" * 8 * MAX_ANSWER, f"its answer is larger than {MAX_ANSWER} bytes"),
        (b'"' + b"x" * MAX_ANSWER + b'"', f"its answer is larger than {MAX_ANSWER} bytes"),
    ],
)
async def test_what_is_no_answer_is_a_failure(server: RemoteServer, hooks: Hooks, body: bytes, expected: str) -> None:
    server.answer = lambda _: Reply(body=body)
    assert await failure(hooks.make(server.url)) == expected


async def test_a_compressed_answer_is_not_unpacked(server: RemoteServer, hooks: Hooks) -> None:
    server.answer = lambda _: Reply(body=b"\x1f\x8b" + b"x" * 100, headers={"content-encoding": "gzip"})
    assert await failure(hooks.make(server.url)) == "its answer is no JSON object of a usual depth"
    assert server.received[0].headers["accept-encoding"] == "identity"


async def test_cookies_are_not_kept(server: RemoteServer, hooks: Hooks) -> None:
    server.answer = lambda _: Reply(headers={"set-cookie": "a=b"})
    hook = hooks.make(server.url)
    await hook.ask(QUESTION)
    await hook.ask(QUESTION)
    assert "cookie" not in server.received[1].headers


async def test_a_slow_answer_is_not_waited_for_too_long(server: RemoteServer, hooks: Hooks) -> None:
    release = threading.Event()

    def slowly(_: Received) -> Reply:
        release.wait(PATIENCE)
        return Reply()

    server.answer = slowly
    try:
        assert await failure(hooks.make(server.url, patience=0.2)) == "no answer in time"
    finally:
        release.set()


async def test_all_attempts_together_have_a_limit(server: RemoteServer, hooks: Hooks) -> None:
    server.answer = lambda _: Reply(status=500)
    assert await failure(hooks.make(server.url, patience=0.4)) == "it answers with status 500"
    assert len(server.received) == 1  # the next attempt would begin after the limit
    assert hooks.pauses.seconds == []


async def test_where_nothing_listens_it_fails_at_once_and_works_afterwards(server: RemoteServer, hooks: Hooks) -> None:
    hook = hooks.make(server.url)
    server.stop()
    assert "connect" in (await failure(hook)).lower()
    assert hooks.pauses.seconds == []
    server.start()
    assert await hook.ask(QUESTION) == {}


@pytest.fixture
async def documents(authority: Authority) -> AsyncIterator[Documents]:
    made = Documents(certificate_authority=Pem(data=authority.pem), user_agent=AGENT, patience=PATIENCE)
    yield made
    await made.close()
    await silence()


@pytest.mark.parametrize(("path", "expected"), [("/keys/?a=b%20c", "/keys/?a=b%20c"), ("/a b", "/a%20b"), ("", "/")])
async def test_documents_are_fetched_without_credentials(
    server: RemoteServer, documents: Documents, path: str, expected: str
) -> None:
    assert await documents.fetch(server.url + path) == {}
    assert (server.received[0].method, server.received[0].path) == ("GET", expected)
    assert server.received[0].headers.keys().isdisjoint({"authorization", "content-type", "cookie"})


async def test_documents_of_several_servers_are_fetched(
    server: RemoteServer, authority: Authority, documents: Documents
) -> None:
    with RemoteServer(authority) as other:
        for url in (server.url, f"{other.url}/keys", f"{server.url}/again"):
            await documents.fetch(url)
        assert [received.path for received in server.received] == ["/", "/again"]
        assert [received.path for received in other.received] == ["/keys"]


async def test_documents_that_cannot_be_fetched_are_failures(server: RemoteServer, documents: Documents) -> None:
    server.answer = lambda _: Reply(status=503)
    with pytest.raises(CallFailed, match="status 503"):
        await documents.fetch(server.url)
    assert len(server.received) == 1
    with pytest.raises(CallFailed, match="must be a URL"):
        await documents.fetch("https://user@example.com/keys")
