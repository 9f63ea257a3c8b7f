"""Rights that change under load: a right is gone once its removal is answered."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest

from clusterregistry.apiserver.http.response import StreamResponse, resolve
from tests.apiserver.api.group_objects import SETS, cluster_set, on_sets
from tests.apiserver.api.in_process import InProcess
from tests.apiserver.api.objects import CLUSTERS, MERGE_PATCH, cluster
from tests.apiserver.api.rbac_objects import (
    BINDINGS,
    ROLES,
    binding,
    local_binding,
    local_bindings,
    local_role,
    local_roles,
    role,
    rule,
)
from tests.system.access.oracle import Action, Call, Login
from tests.system.access.servers import PATIENCE, ChainRequest

NAMES = [f"c{number:02}" for number in range(12)]
ROUNDS = 6
WORKERS = 4


def lease(name: str) -> dict[str, Any]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("changing")).running() as started:
        for name in NAMES:
            started.client().post(CLUSTERS, cluster(name)).expect(201)
            started.client().post(LEASES, lease(name)).expect(201)
        started.client().post(SETS, cluster_set("all", clusters=NAMES)).expect(201)
        yield started


@dataclass
class Party:
    """Users of one server, on its loop. ``now`` counts requests that were sent or answered."""

    server: InProcess
    now: int = 0
    answered: int = 0
    """The answered requests of the workers."""
    done: bool = False
    wrong: list[str] = field(default_factory=list)
    progress: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, method: str, target: str, body: Any = None, *, token: str = "admintoken") -> tuple[int, Any]:
        media = MERGE_PATCH if method == "PATCH" else "application/json"
        login = Login(label="", user=None, headers=(("Authorization", f"Bearer {token}"),))
        call = Call(method=method, target=target, action=Action(verb=""), body=body, content_type=media)
        answer = await resolve(self.server.server.handler(ChainRequest(login, call, ())))
        if isinstance(answer, StreamResponse):  # a watch that is left before it begins
            return answer.status, None
        return answer.status, json.loads(b"".join(answer.body) or b"null")

    async def good(self, method: str, target: str, body: Any = None) -> None:
        status, answered = await self.call(method, target, body)
        assert status in (200, 201), answered

    def tick(self) -> int:
        self.now += 1
        return self.now

    async def workers_answered(self, requests: int = 3 * WORKERS) -> None:
        """Returns once so many more requests of the workers are answered."""
        until = self.answered + requests
        while self.answered < until:
            self.progress.clear()
            await self.progress.wait()

    async def at_work(self, worker: Callable[[Party, int], Awaitable[None]], change: Awaitable[None]) -> None:
        """Runs ``change`` beside the workers, and ends them."""

        async def work(number: int) -> None:
            while not self.done:
                await worker(self, number)
                self.answered += 1
                self.progress.set()
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(work(number)) for number in range(WORKERS)]
        try:
            await change
        finally:
            self.done = True
            await asyncio.gather(*tasks)


Step = tuple[str, str, Any]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Objects, and the kinds of roles and bindings that give rights on them."""

    objects: str
    listed: str
    """The path of the lists; in a namespace it is that of all namespaces."""
    rule: Callable[..., dict[str, Any]]
    roles: str
    bindings: str
    role: Callable[..., dict[str, Any]]
    binding: Callable[..., dict[str, Any]]

    @property
    def given(self) -> Step:
        return "PUT", f"{self.bindings}/shifting", self.binding("shifting", "shifting", User="nobody")

    @property
    def filled(self) -> Step:
        return "PUT", f"{self.roles}/shifting", self.role("shifting", self.rule("get", "list", "watch", "patch"))

    def taken_away(self) -> dict[str, tuple[Step, Step]]:
        """How to remove rights, and how to grant them again."""
        role, binding = f"{self.roles}/shifting", f"{self.bindings}/shifting"
        selected = f"{self.bindings}?fieldSelector=metadata.name%3Dshifting"
        return {
            "the binding is deleted": (("DELETE", binding, None), self.given),
            "its subjects go": (("PATCH", binding, {"subjects": None}), self.given),
            "all bindings of a name are deleted": (("DELETE", selected, None), self.given),
            "the role is deleted": (("DELETE", role, None), self.filled),
            "the role's rules go": (("PATCH", role, {"rules": []}), self.filled),
            "the role's rules are replaced": (("PATCH", role, {"rules": [self.rule("delete")]}), self.filled),
        }

    def work(self) -> list[Step]:
        return [
            ("GET", f"{self.objects}/{NAMES[0]}", None),
            ("GET", self.objects, None),
            ("GET", f"{self.objects}?watch=1", None),
            ("PATCH", f"{self.objects}/{NAMES[1]}?dryRun=All", {"metadata": {"labels": {"x": "y"}}}),
        ]

    def by_names(self, visible: frozenset[str] | None) -> Step:
        """Makes some objects visible; None: all."""
        if visible is None:  # a name as well: the right to list a namespace does not open the list of all
            shown = [self.rule("get", "list"), self.rule("get", names=NAMES[:1])]
        else:
            shown = [self.rule("get", names=sorted(visible))] if visible else []
        return "PUT", f"{self.roles}/shifting", self.role("shifting", *shown)


def lease_rule(*verbs: str, names: Sequence[str] = ()) -> dict[str, Any]:
    return rule(*verbs, resource="leases", group="coordination.k8s.io", names=names)


LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
SCOPES = {
    "root-scoped": Scope(
        objects=CLUSTERS, listed=CLUSTERS, rule=rule, roles=ROLES, bindings=BINDINGS, role=role, binding=binding
    ),
    "in a namespace": Scope(
        objects=LEASES,
        listed="/apis/coordination.k8s.io/v1/leases",
        rule=lease_rule,
        roles=local_roles("default"),
        bindings=local_bindings("default"),
        role=local_role,
        binding=local_binding,
    ),
}


class SetScope(Scope):
    """Rights on the members of a set, which go with the set as well."""

    def taken_away(self) -> dict[str, tuple[Step, Step]]:
        path, given = f"{SETS}/all", ("PUT", f"{SETS}/all", cluster_set("all", clusters=NAMES))
        return super().taken_away() | {
            "the set is deleted": (("DELETE", path, None), given),
            "the set names no cluster": (("PATCH", path, {"spec": {"clusters": None}}), given),
            "the set selects others": (("PUT", path, cluster_set("all", {"matchLabels": {"x": "none"}})), given),
        }

    def work(self) -> list[Step]:
        """Not lists and watches: of a set without members they are empty."""
        one, _, _, patch = super().work()
        return [one, patch, ("GET", f"{CLUSTERS}/{NAMES[2]}", None), ("GET", f"{CLUSTERS}/{NAMES[2]}/status", None)]


def members_rule(*verbs: str) -> dict[str, Any]:
    both = on_sets(*verbs, names=["all"])
    return {**both, "resources": [*both["resources"], "clustersets/clusters-status"]}


MEMBERS = SetScope(
    objects=CLUSTERS,
    listed=CLUSTERS,
    rule=members_rule,
    roles=ROLES,
    bindings=BINDINGS,
    role=role,
    binding=binding,
)
WAYS = [(name, way) for name, scope in SCOPES.items() for way in scope.taken_away()]
WAYS += [("members of a set", way) for way in MEMBERS.taken_away()]


@dataclass
class Change:
    """Whether rights are granted (200), removed (403) or just changing (0), and since when."""

    status: int = 200
    since: int = 0


@pytest.mark.parametrize(("scope_name", "way"), WAYS)
def test_rights_are_gone_for_all_requests_after_the_answer_that_they_are(
    server: InProcess, way: str, scope_name: str
) -> None:
    party, current, scope = Party(server), Change(), SCOPES.get(scope_name, MEMBERS)
    checked = {200: 0, 403: 0}
    (taken, given), work = scope.taken_away()[way], scope.work()

    async def worker(party: Party, number: int) -> None:
        due, since = current.status, current.since
        status, _ = await party.call(*work[number], token="nobodytoken")
        if due and current.since == since:  # nothing changed between question and answer
            checked[due] += 1
            if status != due:
                party.wrong.append(f"{work[number][:2]}: {status}, expected {due}")

    async def make(step: Step, *, leads_to: int) -> None:
        current.status, current.since = 0, party.tick()
        await party.good(*step)
        current.status, current.since = leads_to, party.tick()
        await party.workers_answered()

    async def change() -> None:
        for _ in range(ROUNDS):
            await make(taken, leads_to=403)
            await make(given, leads_to=200)

    async def begin() -> None:
        await party.good(*scope.filled)
        await party.good(*scope.given)
        await party.at_work(worker, change())

    server.start(begin()).result(PATIENCE)
    assert party.wrong == []
    assert min(checked.values()) >= ROUNDS * WORKERS


@dataclass
class Era:
    """What the user may see: possibly from the time ``asked`` on, and certainly from ``answered`` on."""

    visible: frozenset[str] | None
    asked: int
    answered: int = 0


def _possible(eras: list[Era], sent: int, answered: int) -> list[frozenset[str]]:
    """Everything that may have been visible at some time between a request and its answer."""
    ends = [*(era.answered or answered for era in eras[1:]), answered]
    return [
        frozenset(NAMES) if era.visible is None else era.visible
        for era, end in zip(eras, ends, strict=True)
        if era.asked <= answered and end >= sent
    ]


@pytest.mark.parametrize("scope", SCOPES.values(), ids=list(SCOPES))
@pytest.mark.parametrize("seed", [1, 2])
def test_no_page_shows_what_may_not_be_seen_at_its_time(server: InProcess, seed: int, scope: Scope) -> None:
    party, chance = Party(server), random.Random(seed)
    eras = [Era(frozenset(NAMES[:3]), 0, 0)]
    full, refused, pages = 0, 0, 0

    async def worker(party: Party, number: int) -> None:
        nonlocal full, refused, pages
        token = ""
        for _ in itertools.count():
            sent = party.tick()
            query = f"limit={number + 1}" + (f"&continue={quote(token)}" if token else "")
            path = scope.listed if number % 2 else scope.objects
            status, answer = await party.call("GET", f"{path}?{query}", token="nobodytoken")
            possible = _possible(eras, sent, party.tick())
            shown = frozenset(item["metadata"]["name"] for item in answer.get("items", ()))
            if status == 403:
                refused += 1
                if frozenset() not in possible:
                    party.wrong.append(f"403, with one of {possible} to be seen")
                return
            pages += 1
            full += len(shown) == number + 1
            if status != 200 or not any(shown <= each for each in possible):
                party.wrong.append(f"{status}: {sorted(shown)}, of {[sorted(each) for each in possible]}")
            token = answer["metadata"].get("continue", "")
            if not token:
                return
            await asyncio.sleep(0)

    async def change() -> None:
        for _ in range(ROUNDS * 5):
            some = frozenset(name for name in NAMES if chance.random() < 0.5)
            eras.append(Era(chance.choice([some, some, some, frozenset(), None]), party.tick()))
            await party.good(*scope.by_names(eras[-1].visible))
            eras[-1].answered = party.tick()
            await party.workers_answered(WORKERS)
            # What happens to objects moves the pages of those who go on at an older revision.
            changed = {"metadata": {"labels": {"at": str(party.now)}}}
            await party.good("PATCH", f"{scope.objects}/{chance.choice(NAMES)}", changed)

    async def begin() -> None:
        await party.good(*scope.by_names(eras[0].visible))
        await party.good(*scope.given)
        await party.at_work(worker, change())

    server.start(begin()).result(PATIENCE)
    assert party.wrong == []
    assert pages > full > ROUNDS
    assert refused > 0
