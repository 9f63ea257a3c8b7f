"""Which requests for certificates are approved, and which wait for a person, over a real storage."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.endpoints.request_scope import field_managers
from clusterregistry.apiserver.registry.certificates.resource import certificate_signing_request_resource
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.rbac.bootstrap import ServerWriter
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.object_bytes import decoded
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.registry.agents.approver import AgentApprover
from clusterregistry.registry.agents.identity import Identities
from clusterregistry.registry.bootstraptoken import bootstrap_token_resource
from clusterregistry.registry.bootstraptoken.cleaner import KEPT, TokenCleaner
from clusterregistry.registry.bootstraptoken.tokens import BootstrapTokens
from clusterregistry.registry.cluster import cluster_resource
from tests.apiserver.api.objects import cluster
from tests.registry.agents.stores import NOW, create, open_store
from tests.registry.agents.tokens import AGENTS, agent_request, token

BOOTSTRAPPERS = ["system:bootstrappers", "system:bootstrappers:clusterregistry"]
AGENT = {"username": "system:clusterregistry:agent:edge", "groups": [AGENTS, "system:authenticated"]}
MEMBER = {"username": "system:bootstrap:aaaaaa", "groups": [*BOOTSTRAPPERS, "system:authenticated"]}


class Clock:
    """The present time, until a test sets another one."""

    def __init__(self) -> None:
        self.seconds = time.time()

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Stores:
    """What the approver reads and writes."""

    requests: Store
    clusters: Store
    tokens: Store
    approver: AgentApprover
    clock: Clock


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with AsyncExitStack() as stack:
        storage = await SQLiteStorage.open(tmp_path / "registry.db")
        stack.push_async_callback(storage.close)
        kinds = (certificate_signing_request_resource(), cluster_resource("off"), bootstrap_token_resource())
        requests, clusters, tokens = [await open_store(each, storage, stack) for each in kinds]
        managers = field_managers(requests.resource, requests.resource.stored_as, now=lambda: NOW)
        writer = ServerWriter(store=requests, field_manager=managers["approval"], subresource="approval")
        clock = Clock()
        identities = Identities(BootstrapTokens(tokens, clock=clock))
        approver = AgentApprover(writer, clusters=clusters, identities=identities)
        stack.callback(approver.close)
        made = Stores(requests=requests, clusters=clusters, tokens=tokens, approver=approver, clock=clock)
        await create(clusters, cluster("edge"))
        await create(tokens, token("aaaaaa", "edge"))
        yield made


async def asked(stores: Stores, request: dict[str, Any], user: dict[str, Any]) -> list[dict[str, Any]]:
    """The conditions of a request after the approver has looked at it."""

    async def admit(obj: dict[str, Any], _: Any) -> None:
        obj["spec"] |= user  # as the admission does

    kv = await stores.requests.create(request, dry_run=False, warn=lambda _: None, admit=admit)
    name = stores.requests.key_in(kv)
    await stores.approver.handle(name)
    conditions: list[dict[str, Any]] = decoded(await stores.requests.get(name))["status"].get("conditions", [])
    return conditions


@pytest.mark.parametrize("user", [MEMBER, AGENT])
async def test_a_request_for_the_own_certificate_is_approved(stores: Stores, user: dict[str, Any]) -> None:
    (condition,) = await asked(stores, agent_request("edge"), user)
    assert (condition["type"], condition["status"], condition["reason"]) == ("Approved", "True", "AutoApproved")
    assert user["username"] in condition["message"]


OTHERS: dict[str, dict[str, Any]] = {
    "an administrator": {"username": "admin", "groups": ["system:masters"]},
    "a member with another token": {**MEMBER, "username": "system:bootstrap:bbbbbb"},
    "a member without its group": {**MEMBER, "groups": ["system:bootstrappers"]},
    "an agent without its group": {**AGENT, "groups": ["system:authenticated"]},
    "another agent": {**AGENT, "username": "system:clusterregistry:agent:other"},
    "an agent without a name": {**AGENT, "username": "system:clusterregistry:agent:"},
    "both at once": {"username": MEMBER["username"], "groups": [AGENTS, *BOOTSTRAPPERS]},
}


@pytest.mark.parametrize("who", OTHERS)
async def test_requests_of_others_wait(stores: Stores, who: str) -> None:
    assert await asked(stores, agent_request("edge"), OTHERS[who]) == []


UNFIT: dict[str, dict[str, Any]] = {
    "another cluster": agent_request("other"),
    "another user": agent_request("edge", user="ann"),
    "a further group": agent_request("edge", groups=(AGENTS, "system:masters")),
    "no end": agent_request("edge", expirationSeconds=None),
    "another usage": agent_request("edge", usages=["client auth", "server auth"]),
    "another signer": agent_request("edge", signerName="example.com/signer"),
}


@pytest.mark.parametrize("what", UNFIT)
async def test_other_requests_wait(stores: Stores, what: str) -> None:
    """Also if another program has written them past the admission."""
    assert await asked(stores, UNFIT[what], MEMBER) == []


async def test_a_token_that_was_deleted_meanwhile_does_not_count(stores: Stores) -> None:
    await stores.tokens.delete("aaaaaa", DeleteOptions())
    assert await asked(stores, agent_request("edge"), MEMBER) == []


async def test_a_token_that_has_ended_meanwhile_does_not_count(stores: Stores) -> None:
    stores.clock.seconds += 2 * 3600
    assert await asked(stores, agent_request("edge"), MEMBER) == []


async def test_an_agent_whose_cluster_is_gone_renews_nothing(stores: Stores) -> None:
    await stores.clusters.delete("edge", DeleteOptions())
    assert await asked(stores, agent_request("edge"), AGENT) == []


async def test_what_was_decided_stays(stores: Stores) -> None:
    request = agent_request("edge")
    (first,) = await asked(stores, request, MEMBER)
    await stores.approver.handle(request["metadata"]["name"])
    stored = decoded(await stores.requests.get(request["metadata"]["name"]))
    assert stored["status"]["conditions"] == [first]


async def test_tokens_are_removed_an_hour_after_their_end(stores: Stores) -> None:
    cleaner = TokenCleaner(stores.tokens, clock=stores.clock)
    stores.clock.seconds += 3600 + KEPT - 60
    await cleaner.clean_up()
    assert stores.tokens.count() == 1
    stores.clock.seconds += 120
    await cleaner.clean_up()
    assert stores.tokens.count() == 0


async def test_tokens_that_do_not_fit_cost_no_read(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    async def get(key: str) -> None:
        read.append(key)

    monkeypatch.setattr(stores.tokens, "get", get)
    tokens = BootstrapTokens(stores.tokens)
    for wrong in (
        "",
        ".",
        "a.b",
        "aaaaaa." + "b" * 32,
        "zzzzzz." + "b" * 32,
        "x" * 10_000,
        "eyJh.eyJh.c2ln",
    ):
        assert tokens.user_of(wrong) is None
    assert read == []
