"""Random graphs of owners and random deletions: what remains is what a simple rule says, also after crashes."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.controllers.sample_stores import Fleet, fleet_over, settle

NAMES = [
    *(f"Ship/{at}" for at in range(3)),
    *(f"Crate/x/{at}" for at in range(4)),
    *(f"Fish/y/{at}" for at in range(3)),
]
POLICIES = [None, "Background", "Foreground", "Orphan"]


@dataclass
class Oracle:
    """What the objects are and who owns them. An owner that never existed has a number that no object has."""

    owners: dict[str, set[str]] = field(default_factory=dict)

    def delete(self, name: str, policy: str | None) -> None:
        if self.owners.pop(name, None) is None:
            return
        if policy == "Orphan":
            for dependent, owners in self.owners.items():
                if not _cannot_be_resolved(dependent, name):
                    owners.discard(name)
        self.collect()

    def collect(self) -> None:
        """Removes objects that have owners, none of which exists, until there are none."""
        while True:
            gone = [name for name, owners in self.owners.items() if owners and not self._present(name, owners)]
            if not gone:
                break
            for name in gone:
                del self.owners[name]
        for name, owners in self.owners.items():
            self.owners[name] = self._present(name, owners)

    def _present(self, name: str, owners: set[str]) -> set[str]:
        return {owner for owner in owners if owner in self.owners and not _in_other_namespace(name, owner)} | {
            owner for owner in owners if _cannot_be_resolved(name, owner)
        }


def _namespace(name: str) -> str:
    return name.split("/")[1] if name.count("/") > 1 else ""


def _in_other_namespace(name: str, owner: str) -> bool:
    return bool(_namespace(owner)) and _namespace(owner) != _namespace(name)


def _cannot_be_resolved(name: str, owner: str) -> bool:
    return not _namespace(name) and bool(_namespace(owner))


@dataclass(frozen=True)
class Plan:
    """Objects in the order of their creation, each with owners among all, and deletions."""

    owners: dict[str, list[tuple[str, bool]]]
    deletions: list[tuple[str, str | None]]
    steps: int
    """After so many steps the collector ends, and another one begins."""


plans = st.builds(
    Plan,
    owners=st.fixed_dictionaries(
        {},
        optional={name: st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=3) for name in NAMES},
    ),
    deletions=st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(POLICIES)), max_size=6),
    steps=st.integers(1, 4),
)


async def _create(fleet: Fleet, plan: Plan) -> Oracle:
    """Creates the objects without owners and then sets these, so that circles are possible."""
    references = {name: await fleet.create(name) for name in plan.owners}
    oracle = Oracle({name: set() for name in plan.owners})
    for name, owners in plan.owners.items():
        wanted: dict[str, dict[str, Any]] = {}
        for owner, blocks in owners:
            # One that does not exist has another uid.
            kind, own_name = owner.split("/")[0], owner.rpartition("/")[2]
            absent = {"apiVersion": "wardle.example.com/v1", "kind": kind, "name": own_name, "uid": f"no-{owner}"}
            wanted[owner] = {**references.get(owner, absent), "blockOwnerDeletion": blocks}
        if wanted:
            await fleet.change(name, ownerReferences=list(wanted.values()))
        oracle.owners[name] = set(wanted)
    return oracle


async def _remains(plan: Plan, directory: str, *, crashing: bool) -> None:
    storage = await SQLiteStorage.open(Path(directory) / "registry.db")
    async with fleet_over(storage) as fleet:
        oracle = await _create(fleet, plan)
        oracle.collect()
        collector = fleet.collector()
        await settle(collector)
        assert await fleet.names() == set(oracle.owners)
        for name, policy in plan.deletions:
            if name not in oracle.owners:
                continue
            await fleet.delete(name, policy)
            oracle.delete(name, policy)
            while crashing and not collector.is_idle:
                await settle(collector, steps=1 + plan.steps)  # the first one reads everything
                collector.close()
                collector = fleet.collector()
                if await fleet.names() == set(oracle.owners):
                    break
            await settle(collector)
            assert await fleet.names() == set(oracle.owners)
        for name in oracle.owners:
            references = (await fleet.metadata(name)).get("ownerReferences", ())
            assert len(references) == len(oracle.owners[name])
        collector.close()
        assert not collector._queue._failures
    await storage.close()


@settings(max_examples=60)
@given(plans)
def test_what_remains_is_what_has_an_owner_or_never_had_one(plan: Plan) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(_remains(plan, directory, crashing=False))


@settings(max_examples=30)
@given(plans)
def test_what_remains_does_not_depend_on_crashes(plan: Plan) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(_remains(plan, directory, crashing=True))
