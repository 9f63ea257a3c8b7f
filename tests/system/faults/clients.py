"""Clients of the registry: writers, readers and watchers. Each does one thing at a time, and records it.

A client stays with one replica until that fails it, then it goes on to the next, as behind a load balancer. A watcher
goes on to the next one in any case when its watch ends.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Sequence
from contextlib import aclosing, closing, suppress
from typing import Any

from tests.system.faults import registry_api
from tests.system.faults.connections import PATIENCE, Connection, LostError, Target, UnreachableError
from tests.system.faults.records import (
    ENDING,
    LEASES,
    NAMESPACES,
    Action,
    Intent,
    Operation,
    Outcome,
    Result,
    Selection,
    Sight,
    Version,
    WatchRecord,
)
from tests.system.faults.resources import resource_of

RETRY_SECONDS = 0.02
WATCH_SECONDS = range(3, 11)
IDLE_SECONDS = 4.0
SETTLED = 5
"""Leases in a new namespace that nobody but the server deletes."""
LIFE_SECONDS, LOOK_SECONDS = (0.1, 1.0), 0.05
"""How long a namespace lives that comes and goes, and the time between two looks at one that is to go."""
ELSEWHERE = 0.25
"""How many writes are followed by a read from another replica."""

UNKNOWN_KEY = {Action.CREATE: 8, Action.APPLY: 2, Action.PATCH: 1, Action.DELETE: 1}
KNOWN_KEY = {
    Action.UPDATE: 8,
    Action.PATCH: 5,
    Action.APPLY: 3,
    Action.STATUS: 3,
    Action.DELETE: 3,
    Action.CREATE: 1,
}
"""How often something is done to a key that is thought not to be there, and to one that is."""
UNCLEAR = frozenset({Result.EXISTS, Result.CONFLICT, Result.UNKNOWN})


class Client:
    """Asks one replica after the other, and records what it asked and what it was answered."""

    def __init__(
        self, name: str, targets: Sequence[Target], *, operations: list[Operation], patience: float = PATIENCE
    ) -> None:
        self.name = name
        self._replicas = Replicas(targets)
        self._operations, self._patience = operations, patience
        self._connection: Connection | None = None

    async def perform(self, intent: Intent) -> Outcome:
        """Waits for a replica, asks it once, and returns what became of that."""
        await self._connected()
        invoked, answered = time.monotonic(), math.inf
        outcome = Outcome(result=Result.UNKNOWN, text="the client was stopped")
        try:
            outcome = await self._answer(intent)
            answered = time.monotonic()
        except LostError as error:
            outcome = Outcome(result=Result.UNKNOWN, text=str(error))
        finally:
            if outcome.result is Result.UNKNOWN:
                self._leave()  # also since a late answer would be taken for that of the next request
            self._operations.append(
                Operation(client=self.name, intent=intent, invoked=invoked, answered=answered, outcome=outcome)
            )
        return outcome

    async def _answer(self, intent: Intent) -> Outcome:
        """With all pages, each from another replica: they are pages of one revision on every replica."""
        outcome = await self._exchange(intent)
        while outcome.result is Result.OK and outcome.more:
            self._leave()
            outcome = registry_api.joined(outcome, await self._exchange(intent, more=outcome.more))
        return outcome

    async def _exchange(self, intent: Intent, *, more: str = "") -> Outcome:
        connection = await self._connected()
        request = registry_api.request_of(intent, more=more)
        answer = await connection.exchange(
            request.method, request.path, body=request.body, content_type=request.content_type, patience=self._patience
        )
        return registry_api.outcome_of(intent, answer)

    async def perform_until_ok(self, intent: Intent) -> Outcome:
        """For what can be asked again without harm."""
        while True:
            outcome = await self.perform(intent)
            if outcome.result is Result.OK:
                return outcome
            await asyncio.sleep(RETRY_SECONDS)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = await self._replicas.connect(self._patience)
        return self._connection

    def _leave(self) -> None:
        self.close()
        self._replicas.next()


class Replicas:
    """The targets in turn."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets, self._index = list(targets), 0

    def next(self) -> None:
        self._index = (self._index + 1) % len(self._targets)

    async def connect(self, patience: float) -> Connection:
        """A connection to the first that can be reached, however long that takes."""
        while True:
            try:
                return await Connection.open(self._targets[self._index], patience=patience)
            except UnreachableError:
                self.next()
                await asyncio.sleep(RETRY_SECONDS)


class Writer:
    """Changes objects at random, on what is known of them, and looks at some of them from elsewhere.

    The writers share what they know. Most of their writes then succeed, and those that race for a key still conflict.
    """

    def __init__(
        self, client: Client, *, elsewhere: Client, keys: Sequence[str], known: dict[str, Version], rng: random.Random
    ) -> None:
        self._client, self._elsewhere = client, elsewhere
        self._keys, self._known, self._rng = keys, known, rng
        self._count = 0

    async def work(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            await self._write(self._intent(self._rng.choice(self._keys)))

    def _intent(self, key: str) -> Intent:
        known = self._known.get(key)
        weights = UNKNOWN_KEY if known is None else KNOWN_KEY
        if not resource_of(key).status:
            weights = {action: weight for action, weight in weights.items() if action is not Action.STATUS}
        action = self._rng.choices(list(weights), weights=list(weights.values()))[0]
        return Intent(
            action=action,
            key=key,
            token=self._token(action),
            expected=self._expected(action, known),
            uid=known.uid if known and action is Action.DELETE and self._rng.random() < 0.5 else "",
        )

    def _token(self, action: Action) -> str:
        self._count += 1
        return "" if action is Action.DELETE else f"{self._client.name}-{self._count}"

    def _expected(self, action: Action, known: Version | None) -> int | None:
        """An update must name what it replaces; patches and deletions may, and do every other time."""
        if known is None or action in (Action.CREATE, Action.APPLY):
            return None
        return known.revision if action is Action.UPDATE or self._rng.random() < 0.5 else None

    async def _write(self, intent: Intent) -> None:
        outcome = await self._client.perform(intent)
        if outcome.result in UNCLEAR or self._rng.random() < ELSEWHERE:
            outcome = await self._elsewhere.perform(Intent(action=Action.GET, key=intent.key))
        if outcome.version is None:
            self._known.pop(intent.key, None)
        else:
            self._known[intent.key] = outcome.version


def collections_of(keys: Sequence[str]) -> list[str]:
    """What can be listed and watched of keys: each resource, all namespaces of it, and each of its namespaces."""
    within = {key.rpartition("/")[0] for key in keys}
    return sorted(within | {collection.partition("/")[0] for collection in within})


class Reader:
    """Looks at keys and at all of them, as of now, or not older than something, or however old."""

    def __init__(self, client: Client, *, keys: Sequence[str], rng: random.Random) -> None:
        self._client, self._keys, self._rng = client, keys, rng
        self._collections = collections_of(keys)
        self._newest = 0

    async def work(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            outcome = await self._client.perform(self._intent())
            self._newest = max(self._newest, outcome.revision)

    def _intent(self) -> Intent:
        expected = self._rng.choice((None, None, 0, self._newest))
        if self._rng.random() < 0.2:
            selection, limit = self._rng.choice(list(Selection)), self._rng.choice((0, 3))
            return Intent(
                action=Action.LIST,
                collection=self._rng.choice(self._collections),
                expected=expected,
                selection=selection,
                limit=limit,
            )
        return Intent(action=Action.GET, key=self._rng.choice(self._keys), expected=expected)


class Lifecycle:
    """Deletes a namespace and creates it again, over and over, with Leases that are left for the server to delete."""

    def __init__(self, client: Client, *, key: str, rng: random.Random) -> None:
        self._client, self._key, self._rng = client, key, rng
        self._content = f"{LEASES}/{key.removeprefix(f'{NAMESPACES}/')}"
        self._count = 0

    async def work(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            await asyncio.sleep(self._rng.uniform(*LIFE_SECONDS))
            await self._remove(stopping)
            await self.create(stopping)

    async def create(self, stopping: asyncio.Event) -> None:
        """Until it is there: one that is being deleted has to go first."""
        while not stopping.is_set():
            self._count += 1
            token = f"{self._client.name}-{self._count}"
            outcome = await self._client.perform(Intent(action=Action.CREATE, key=self._key, token=token))
            if outcome.result in (Result.OK, Result.EXISTS):
                await self._settle()
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _settle(self) -> None:
        for number in range(SETTLED):
            key = f"{self._content}/settled-{number}"
            token = f"{self._client.name}-{self._count}-{number}"
            await self._client.perform(Intent(action=Action.CREATE, key=key, token=token))

    async def end(self) -> None:
        """Deletes it, and returns when it is gone, and all that was in it."""
        await self._remove(asyncio.Event())
        while True:
            listed = await self._client.perform_until_ok(Intent(action=Action.LIST, collection=self._content))
            if not listed.items:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _remove(self, stopping: asyncio.Event) -> None:
        """Asks for it whenever it is not being deleted, until it is gone."""
        while not stopping.is_set():
            there = await self._client.perform(Intent(action=Action.GET, key=self._key))
            if there.result is Result.ABSENT:
                return
            if there.version is not None and there.version.value.status != ENDING:
                await self._client.perform(Intent(action=Action.DELETE, key=self._key))
            await asyncio.sleep(LOOK_SECONDS)


class Watcher:
    """Watches a selection since a revision, and resumes from the last one that it received."""

    def __init__(
        self, record: WatchRecord, targets: Sequence[Target], *, rng: random.Random, patience: float = PATIENCE
    ) -> None:
        self.record = record
        self._replicas, self._rng = Replicas(targets), rng
        self._patience = patience
        self.last = record.start
        """The newest revision that it received."""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def work(self) -> None:
        """For ever; end it by cancelling."""
        while True:
            connection = await self._replicas.connect(self._patience)
            self.record.connections += 1
            with suppress(LostError), closing(connection):
                await self._watch(connection)
            self._replicas.next()

    async def reach(self, revision: int) -> None:
        """Returns once a change or bookmark of that revision, or of a later one, was received."""
        if self.last < revision:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((revision, future))
            await future

    async def _watch(self, connection: Connection) -> None:
        seconds = self._rng.choice(WATCH_SECONDS)
        path = registry_api.watch_path(
            since=self.last, seconds=seconds, selection=self.record.selection, collection=self.record.collection
        )
        async with aclosing(connection.lines(path, idle=seconds + IDLE_SECONDS)) as lines:
            status = int(await anext(lines))
            async for line in lines:
                if status != registry_api.OK:
                    self._refused(status, line.decode(errors="replace"))
                else:
                    self._receive(json.loads(line))

    def _receive(self, event: dict[str, Any]) -> None:
        if event["type"] == "ERROR":
            self._refused(event["object"].get("code", 0), json.dumps(event["object"]))
            return
        bookmark = event["type"] == "BOOKMARK"
        revision = int(event["object"]["metadata"]["resourceVersion"])
        change = None if bookmark else registry_api.change_of(event)
        self.record.sights.append(Sight(time.monotonic(), revision, change))
        self.last = max(self.last, revision)
        self._wake()

    def _refused(self, code: int, text: str) -> None:
        """A replica that cannot answer now is left for another; any other refusal is a fault."""
        if code < registry_api.FIRST_OF_SERVER and code != registry_api.TOO_MANY:
            self.record.troubles.append(f"watch since {self.last}: {code} {text[:500]}")
        raise LostError(f"the watch was refused: {code}")

    def _wake(self) -> None:
        for waiting in [waiting for waiting in self._waiting if waiting[0] <= self.last]:
            self._waiting.remove(waiting)
            if not waiting[1].done():
                waiting[1].set_result(None)
