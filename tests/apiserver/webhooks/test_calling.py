from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.webhooks import config_file, tls, transport
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.webhook import Backoff, Webhook
from tests.remote_servers import PATIENCE, Authority, Received, RemoteServer, Reply, kubeconfig, reply

QUESTION = {"kind": "Question"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def server(authority: Authority) -> Iterator[RemoteServer]:
    with RemoteServer(authority) as started:
        yield started


class Pauses:
    """Instead of time: what was waited for."""

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
        hook = Webhook(config_file.load(path), patience=patience, sleep=self.pauses)
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
        while len(loop._selector.get_map()) > 1:  # noqa: ASYNC110 - the loop's own pipe is left, and tells nobody
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


async def test_a_webhook_that_wants_a_certificate_gets_ours(authority: Authority, hooks: Hooks) -> None:
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


async def test_a_webhook_whose_certificate_nobody_trusts_gets_no_question(server: RemoteServer, hooks: Hooks) -> None:
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
        (b"", "its answer is not JSON"),
        (b"<html>", "its answer is not JSON"),
        (b"\xff", "its answer is not JSON"),
        (b"[]", "its answer is no JSON object of a usual depth"),
        (b'{"a":' * 230 + b"1" + b"}" * 230, "its answer is no JSON object of a usual depth"),
        (b"x" * 8 * transport.MAX_ANSWER, f"its answer is larger than {transport.MAX_ANSWER} bytes"),
        (b'"' + b"x" * transport.MAX_ANSWER + b'"', f"its answer is larger than {transport.MAX_ANSWER} bytes"),
    ],
)
async def test_what_is_no_answer_is_a_failure(server: RemoteServer, hooks: Hooks, body: bytes, expected: str) -> None:
    server.answer = lambda _: Reply(body=body)
    assert await failure(hooks.make(server.url)) == expected


async def test_a_compressed_answer_is_not_unpacked(server: RemoteServer, hooks: Hooks) -> None:
    server.answer = lambda _: Reply(body=b"\x1f\x8b" + b"x" * 100, headers={"content-encoding": "gzip"})
    assert await failure(hooks.make(server.url)) == "its answer is not JSON"
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


async def test_a_single_call_has_a_limit_of_its_own(server: RemoteServer, authority: Authority) -> None:
    release = threading.Event()
    server.answer = lambda _: Reply() if release.wait(PATIENCE) else Reply(status=500)
    context = tls.context()
    tls.trust(context, authority.pem)
    caller = transport.Transport(context, patience=0.2)
    try:
        with pytest.raises(CallFailed, match="no answer in time"):
            await caller.exchange(transport.Call(url=server.url))
    finally:
        release.set()
    await caller.close()
    await silence()


async def test_all_tries_together_have_a_limit(server: RemoteServer, authority: Authority) -> None:
    server.answer = lambda _: Reply(status=500)

    async def for_ever(_: float) -> None:
        await asyncio.Event().wait()

    path = kubeconfig(authority.directory / "x", server.url, cluster={"certificate-authority": "authority.crt"})
    hook = Webhook(config_file.load(path), patience=0.5, sleep=for_ever)
    assert await failure(hook) == "no answer in time"
    await hook.close()
    await silence()


async def test_where_nobody_listens_it_fails_at_once_and_works_when_somebody_does(
    server: RemoteServer, hooks: Hooks
) -> None:
    hook = hooks.make(server.url)
    server.stop()
    assert "connect" in (await failure(hook)).lower()
    assert hooks.pauses.seconds == []
    server.start()
    assert await hook.ask(QUESTION) == {}


async def test_what_has_no_body_is_fetched(server: RemoteServer, authority: Authority) -> None:
    context = tls.context()
    tls.trust(context, authority.pem)
    caller = transport.Transport(context)
    assert await caller.exchange(transport.Call(url=f"{server.url}/keys")) == {}
    assert server.received[0].method == "GET"
    assert server.received[0].headers.keys().isdisjoint({"authorization", "content-type", "cookie"})
    await caller.close()
    await silence()


def test_pauses_grow_and_are_spread() -> None:
    exact = Backoff(jitter=0)
    assert [exact.pause(tried) for tried in (1, 2, 3)] == [0.5, 0.75, 1.125]
    assert len({Backoff().pause(1) for _ in range(20)}) > 1
