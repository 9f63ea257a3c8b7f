"""Credentials of the host cluster, played byte by byte; ``make e2e`` runs them against a real kube-apiserver."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from clusterregistry.controllers.access import AccessRules
from clusterregistry.controllers.access.host_resolvers import SECRET_SECONDS
from clusterregistry.controllers.access.resolver import PAUSE
from clusterregistry.controllers.observer.observation import Reason
from tests.client.fake_clock import until
from tests.client.hostile_servers import HostileServer, response, status
from tests.controllers.access.samples import (
    FakeClocks,
    Plugin,
    access_rules,
    cluster,
    failure_of,
    jwt_until,
    kubeconfig,
    rule,
    token_of,
)

TOKEN = "s3cr3t"
SECRET: dict[str, Any] = {"secret": {"namespace": "clusters"}}
ACCOUNT: dict[str, Any] = {
    "tokenRequest": {"namespace": "clusters", "serviceAccount": "reader", "audience": "https://{name}"}
}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HostileServer]:
    async with HostileServer(tmp_path / "host") as started:
        yield started


class RulesFor(Protocol):
    def __call__(self, use: Any, *, clocks: FakeClocks | None = None) -> AccessRules: ...


@pytest.fixture
async def rules_for(host: HostileServer, tmp_path: Path) -> AsyncIterator[RulesFor]:
    async with contextlib.AsyncExitStack() as stack:

        def opened(use: Any, *, clocks: FakeClocks | None = None) -> AccessRules:
            config = host.config(token="of-this-program")
            access = access_rules(tmp_path, rule(use, provider="corp"), clocks=clocks, host=config)
            stack.push_async_callback(access.close)
            return access

        yield opened


def secret(**data: str | bytes) -> bytes:
    encoded = {
        key.replace("_", "."): base64.b64encode(value.encode() if isinstance(value, str) else value).decode()
        for key, value in data.items()
    }
    return response(json.dumps({"kind": "Secret", "apiVersion": "v1", "data": encoded}))


def token_review(token: Any, end: str = "") -> bytes:
    return response(json.dumps({"kind": "TokenRequest", "status": {"token": token, "expirationTimestamp": end}}))


async def test_a_secret_of_the_name_of_the_cluster(host: HostileServer, rules_for: RulesFor) -> None:
    clocks = FakeClocks()
    access = rules_for(SECRET, clocks=clocks)
    host.answers = [secret(token=f"{TOKEN}\n"), secret(token="rotated")]
    asked = cluster(config={})
    assert [await token_of(access, asked) for _ in range(3)] == [TOKEN] * 3
    (sent,) = host.received
    assert (sent.method, sent.target) == ("GET", "/api/v1/namespaces/clusters/secrets/one")
    assert sent.header("authorization") == "Bearer of-this-program"
    access.reject(asked, await access.credential(asked))
    clocks.pass_seconds(PAUSE)
    assert await token_of(access, asked) == "rotated"


async def test_a_secret_is_read_again_now_and_then(host: HostileServer, rules_for: RulesFor) -> None:
    clocks = FakeClocks()
    access = rules_for(SECRET, clocks=clocks)
    host.answers = [secret(token=TOKEN), status(404, "NotFound")]
    assert await token_of(access, cluster(config={})) == TOKEN
    clocks.pass_seconds(SECRET_SECONDS + 1)
    await token_of(access, cluster(config={}))
    await until(lambda: not access._kept["one"].is_busy)
    failure = await failure_of(access, cluster(config={}))
    assert failure.message == "rule 1 (secret): the host cluster has no Secret clusters/one"


async def test_one_secret_for_many_clusters(host: HostileServer, rules_for: RulesFor) -> None:
    use = {"secret": {"namespace": "clusters", "name": "all", "key": "{config.file}"}}
    access = rules_for(use)
    host.answers = [secret(one_token=TOKEN)]
    assert await token_of(access, cluster(config={"file": "one.token"})) == TOKEN
    assert host.received[0].target.endswith("/secrets/all")


async def test_a_kubeconfig_in_a_secret_runs_no_command_and_reads_no_file(
    host: HostileServer, rules_for: RulesFor, tmp_path: Path
) -> None:
    plugin = Plugin(tmp_path / "plugin")
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin.program)}
    (tmp_path / "outside").write_text("outside")
    access = rules_for({"secret": {"namespace": "clusters", "key": "value"}})
    users: tuple[Any, ...] = ({"exec": {**entry, "interactiveMode": "Never"}}, {"tokenFile": str(tmp_path / "outside")})
    for number, user in enumerate(users):
        host.answers = [secret(value=kubeconfig(user))]
        failure = await failure_of(access, cluster(f"bad-{number}", config={}))
        assert "exec entry" in failure.message or "must lie beside" in failure.message
    assert plugin.count == 0
    host.answers = [secret(value=kubeconfig({"token": TOKEN}))]
    assert await token_of(access, cluster(config={})) == TOKEN


async def test_a_token_for_one_audience(host: HostileServer, rules_for: RulesFor) -> None:
    clocks = FakeClocks()
    access = rules_for(ACCOUNT, clocks=clocks)
    host.answers = [token_review(jwt_until(clocks.now + 3600)), token_review(jwt_until(clocks.now + 7200))]
    first = await token_of(access, cluster(config={}))
    (sent,) = host.received
    assert (sent.method, sent.target) == ("POST", "/api/v1/namespaces/clusters/serviceaccounts/reader/token")
    assert sent.json["spec"] == {"audiences": ["https://one"], "expirationSeconds": 3600}
    clocks.pass_seconds(3601)  # nobody asked meanwhile
    assert await token_of(access, cluster(config={})) != first


@pytest.mark.parametrize("name", ["../x", "A", "a/b", "a b", "a%2fb"])
async def test_a_cluster_fills_in_names_only(host: HostileServer, rules_for: RulesFor, name: str) -> None:
    use = {"secret": {"namespace": "clusters", "name": "{config.name}"}}
    failure = await failure_of(rules_for(use), cluster(config={"name": name}))
    assert "no name of an object" in failure.message
    assert not host.received


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (status(403, "Forbidden"), "does not let this program get Secret clusters/one"),
        (status(404, "NotFound"), "has no Secret clusters/one"),
        (status(500, "InternalError", "on fire"), "on fire"),
        (secret(other=TOKEN), "has no token"),
        (secret(token="two words"), "Secret clusters/one: token is no kubeconfig"),
        (secret(token=b"\xff"), "Secret clusters/one: token"),
        (response("[]"), "host cluster"),
        (response('{"data": {"token": 5}}'), "has no token"),
        (response('{"data": {"token": "*"}}'), "has no token"),
        (response("x" * (5 << 20)), "host cluster"),
        (response(status=302, location="https://127.0.0.1:1/"), "host cluster"),
    ],
)
async def test_what_a_host_may_answer(host: HostileServer, rules_for: RulesFor, answer: bytes, said: str) -> None:
    host.answers = [answer]
    failure = await failure_of(rules_for(SECRET), cluster(config={}))
    assert failure.reason is Reason.CREDENTIAL_MISSING
    assert said in failure.message
    assert TOKEN not in failure.message


@pytest.mark.parametrize("token", [None, 5, "", "two words"])
async def test_a_token_that_is_none(host: HostileServer, rules_for: RulesFor, token: Any) -> None:
    host.answers = [token_review(token)]
    failure = await failure_of(rules_for(ACCOUNT), cluster(config={}))
    assert "ServiceAccount clusters/reader" in failure.message


async def test_a_host_that_is_down_and_none_at_all(host: HostileServer, rules_for: RulesFor, tmp_path: Path) -> None:
    access = rules_for(SECRET)
    await host.stop()
    assert "does not answer" in (await failure_of(access, cluster(config={}))).message
    nowhere = access_rules(tmp_path, rule(SECRET))
    assert "there is no host cluster" in (await failure_of(nowhere, cluster())).message


async def test_the_host_of_a_pod(host: HostileServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-the-pod")
    (tmp_path / "ca.crt").write_bytes(host.authority.pem)
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(host.port)}
    access = access_rules(tmp_path, rule(SECRET), environ=environ, service_account=tmp_path)
    host.answers = [secret(token=TOKEN)]
    assert await token_of(access, cluster()) == TOKEN
    assert host.received[0].header("authorization") == "Bearer of-the-pod"
    await access.close()
