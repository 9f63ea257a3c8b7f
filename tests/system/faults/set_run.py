"""Sets of clusters under crashes: after each kill of a busy server the members of each set are right again.

The history of the crash test says that no acknowledged write is lost. Here it is about what the server derives from
what is stored: members are counted in memory, and their number is stored in the status of each set. So clusters, labels
and sets change until the server is killed, then they rest, and each status has to become what a plain evaluation says.
A user with rights on the members of one set has to see exactly these, and at once: rights wait for nothing.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from clusterregistry.apiserver.registry.object_groups import NOTHING, Members
from clusterregistry.registry.clusterset.membership import members_of
from tests.apiserver.api.group_objects import MEMBERS, SETS
from tests.apiserver.api.objects import CLUSTERS, MERGE_PATCH, cluster
from tests.apiserver.api.rbac_objects import BINDINGS, ROLES, binding, role, rule
from tests.system.faults.connections import Answer, Connection, LostError, Target, UnreachableError
from tests.system.faults.faults import Fault, Violation
from tests.system.faults.nemesis import Killing
from tests.system.faults.report import Say
from tests.system.faults.servers import Server

WRITERS = 6
CLUSTER_NAMES = tuple(f"c-{number:02}" for number in range(30))
SET_NAMES = tuple(f"s-{number}" for number in range(8))
SHORTEST, LONGEST = 0.2, 1.0
"""Seconds of work between two kills."""
IN_TIME = 60.0
"""Seconds until each status has to be right: the machine may be busy."""
LOOK_SECONDS = 0.1

Object = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a run has found."""

    violations: list[Violation] = field(default_factory=list)
    acknowledged: int = 0
    looks: int = 0
    """How often all sets were found to be right."""
    members: int = 0
    """Of all sets at those times."""

    def report(self) -> str:
        lines = [f"{self.acknowledged} writes, {self.members} members in {self.looks} looks at the sets"]
        return "\n".join([*lines, *map(str, self.violations)])


async def crash(servers: Sequence[Server], *, rounds: int, seed: int, say: Say) -> Outcome:
    """Kills one of the replicas so many times while clusters and sets change, and compares what all of them show.

    Raises AssertionError when a server does not start again.
    """
    rng, outcome = random.Random(seed), Outcome()
    say(f"sets: seed {seed}, {rounds} rounds, {len(servers)} servers")
    async with AsyncExitStack() as stack:
        for server in servers:
            await stack.enter_async_context(server.running())
        targets = [server.target() for server in servers]
        await _give_rights(targets[0])
        for number in range(1, rounds + 1):
            async with _writing(targets, outcome, seed=f"{seed} {number}"):
                await asyncio.sleep(rng.uniform(SHORTEST, LONGEST))
                await Killing(rng.choice(servers)).strike()
                await asyncio.sleep(rng.uniform(0, SHORTEST))
            for target in targets:
                await _look_as_users(target, outcome)
                await _look(target, outcome)
            if outcome.violations:
                break
            if number % 10 == 0 or number == rounds:
                say(f"round {number} of {rounds}: {outcome.report()}")
    traces = [text for server in servers for text in server.tracebacks()]
    outcome.violations += [Violation(Fault.TRACEBACK, text) for text in traces]
    return outcome


# Writers


@asynccontextmanager
async def _writing(targets: Sequence[Target], outcome: Outcome, *, seed: str) -> AsyncIterator[None]:
    """Has clusters and sets change within the block. No write is on its way after it."""
    stopping = asyncio.Event()
    rngs = [random.Random(f"{seed} {number}") for number in range(WRITERS)]
    async with asyncio.TaskGroup() as group:
        for rng in rngs:
            group.create_task(_write_until(stopping, targets, outcome, rng))
        try:
            yield
        finally:
            stopping.set()


async def _write_until(
    stopping: asyncio.Event, targets: Sequence[Target], outcome: Outcome, rng: random.Random
) -> None:
    """One write after the other, on a new connection after each that was lost."""
    while not stopping.is_set():
        with suppress(UnreachableError, LostError):
            connection = await Connection.open(rng.choice(targets))
            try:
                while not stopping.is_set():
                    answer = await _write(connection, rng)
                    outcome.acknowledged += answer.status < 300
                    if answer.status >= 500 and answer.status != 503:
                        outcome.violations.append(Violation(Fault.TROUBLE, f"{answer.status}: {answer.body[:500]!r}"))
            finally:
                connection.close()
        await asyncio.sleep(0.01)


async def _write(connection: Connection, rng: random.Random) -> Answer:
    if rng.random() < 0.2:
        return await _write_set(connection, rng.choice(SET_NAMES), rng)
    name, dice = rng.choice(CLUSTER_NAMES), rng.random()
    labels = {label: rng.choice([None, "1", "2"]) for label in "xyz"}
    if dice < 0.2:
        return await connection.exchange("DELETE", f"{CLUSTERS}/{name}")
    if dice < 0.5:
        given = {label: value for label, value in labels.items() if value}
        return await _send(connection, "PUT", f"{CLUSTERS}/{name}", cluster(name, labels=given))
    return await _send(connection, "PATCH", f"{CLUSTERS}/{name}", {"metadata": {"labels": labels}})


async def _write_set(connection: Connection, name: str, rng: random.Random) -> Answer:
    if rng.random() < 0.2:
        return await connection.exchange("DELETE", f"{SETS}/{name}")
    obj = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "ClusterSet", "metadata": {"name": name}}
    return await _send(connection, "PUT", f"{SETS}/{name}", {**obj, "spec": _definition(rng)})


def _definition(rng: random.Random) -> Object:
    spec: Object = {"clusters": rng.sample([*CLUSTER_NAMES, "absent"], rng.randrange(4))}
    expressions = [
        {"key": "x", "operator": "In", "values": ["1", "2"]},
        {"key": "y", "operator": "NotIn", "values": ["1"]},
        {"key": "z", "operator": rng.choice(["Exists", "DoesNotExist"])},
    ]
    match rng.randrange(4):
        case 0:
            spec["selector"] = {"matchLabels": {rng.choice("xyz"): rng.choice("12")}}
        case 1:
            spec["selector"] = {"matchExpressions": rng.sample(expressions, rng.randrange(1, 4))}
        case 2:
            spec["selector"] = {}
    return spec


async def _send(connection: Connection, method: str, path: str, obj: Object) -> Answer:
    kind = MERGE_PATCH if method == "PATCH" else "application/json"
    return await connection.exchange(method, path, body=json.dumps(obj).encode(), content_type=kind)


# The check


async def _look(target: Target, outcome: Outcome) -> None:
    """Returns once each status is right, or notes those that do not become so."""
    connection = await Connection.open(target)
    try:
        deadline = asyncio.get_running_loop().time() + IN_TIME
        while wrong := await _wrong(connection, outcome):
            if asyncio.get_running_loop().time() > deadline:
                outcome.violations += [Violation(Fault.STALE_READ, text) for text in wrong]
                return
            await asyncio.sleep(LOOK_SECONDS)
        outcome.looks += 1
    finally:
        connection.close()


async def _wrong(connection: Connection, outcome: Outcome) -> list[str]:
    """A line for each set whose status is not right. Nothing else changes meanwhile."""
    clusters, sets = await _list(connection, CLUSTERS), await _list(connection, SETS)
    labels = {each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in clusters}
    found = [text for each in sets if (text := _difference(each, members_of(each), labels))]
    if not found:
        outcome.members += sum(each["status"]["clusters"] for each in sets)
    return found


def _difference(cluster_set: Object, definition: Members, clusters: Mapping[str, Mapping[str, str]]) -> str:
    members = sum(definition.has(name, labels) for name, labels in clusters.items())
    expected = (members, definition.names <= clusters.keys(), cluster_set["metadata"]["generation"])
    status = cluster_set.get("status", {})
    conditions = {each["type"]: each["status"] == "True" for each in status.get("conditions", ())}
    shown = (status.get("clusters"), conditions.get("ClustersFound"), status.get("observedGeneration"))
    return "" if shown == expected else f"{cluster_set['metadata']['name']} shows {shown}, but is {expected}"


async def _give_rights(target: Target) -> None:
    """For each set there is a user of its name, who may list its members and nothing else."""
    connection = await Connection.open(target)
    for name in SET_NAMES:
        may_list = rule("list", resource=MEMBERS, names=[name])
        for path, obj in ((ROLES, role(name, may_list)), (BINDINGS, binding(name, name, User=name))):
            assert (await _send(connection, "POST", path, obj)).status == 201
    connection.close()


async def _look_as_users(target: Target, outcome: Outcome) -> None:
    """Compares what each user sees with the members of the set."""
    expected = None
    # A request that its client has left may still change something.
    while (now := await _may_be_seen(target)) != expected:
        expected, seen = now, {user: await _seen_by(replace(target, acts_as=user)) for user in SET_NAMES}
    for user, names in expected.items():
        if seen[user] != names:
            text = f"{user} sees {seen[user]} at {target.url}, but may see {names}"
            outcome.violations.append(Violation(Fault.STALE_READ, text))


async def _may_be_seen(target: Target) -> dict[str, list[str]]:
    """The members of each set, by a plain evaluation."""
    connection = await Connection.open(target)
    clusters, sets = await _list(connection, CLUSTERS), await _list(connection, SETS)
    connection.close()
    definitions = {each["metadata"]["name"]: members_of(each) for each in sets}
    return {
        name: [each["metadata"]["name"] for each in clusters if _is_member(each["metadata"], definition)]
        for name in SET_NAMES
        for definition in (definitions.get(name, NOTHING),)
    }


def _is_member(metadata: Object, definition: Members) -> bool:
    return definition.has(metadata["name"], metadata.get("labels"))


async def _seen_by(target: Target) -> list[str]:
    """The clusters that a user sees; none is a refusal."""
    connection = await Connection.open(target)
    try:
        answer = await connection.exchange("GET", CLUSTERS)
    finally:
        connection.close()
    return [] if answer.status == 403 else [each["metadata"]["name"] for each in json.loads(answer.body)["items"]]


async def _list(connection: Connection, path: str) -> list[Object]:
    answer = await connection.exchange("GET", path)
    assert answer.status == 200, answer
    items: list[Object] = json.loads(answer.body)["items"]
    return items
