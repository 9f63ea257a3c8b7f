"""The walk through time finds the same as a search through all orders, on random short histories."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.system.faults.history import check_operations
from tests.system.faults.records import Action, Change, Intent, Kind, Operation, Outcome, Result, State, Value, Version
from tests.system.faults.timeline import Timeline

KEYS = "ab"
START = 10


class Register:
    """Does operations one after the other, correctly, and remembers the changes."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._states: dict[str, Version] = {}

    def state(self, key: str) -> State:
        return self._states.get(key)

    def do(self, intent: Intent) -> Outcome:
        state = self._states.get(intent.key)
        match intent.action:
            case Action.CREATE if state is not None:
                return Outcome(result=Result.EXISTS)
            case Action.UPDATE if state is None or state.revision != intent.expected:
                return Outcome(result=Result.CONFLICT)
            case Action.GET | Action.DELETE if state is None:
                return Outcome(result=Result.ABSENT)
            case Action.GET:
                return Outcome(result=Result.OK, version=state)
        return self._change(intent, state)

    def _change(self, intent: Intent, state: State) -> Outcome:
        revision = START + len(self.changes) + 1
        uid = state.uid if state else f"uid-{revision}"
        if intent.action is Action.DELETE:
            assert state is not None
            self.changes.append(Change(revision, Kind.DELETED, intent.key, uid, state.value))
            del self._states[intent.key]
            return Outcome(result=Result.OK, uid=uid)
        version = Version(revision, uid, Value(intent.token))
        kind = Kind.MODIFIED if state else Kind.ADDED
        self.changes.append(Change(revision, kind, intent.key, uid, version.value))
        self._states[intent.key] = version
        return Outcome(result=Result.OK, version=version)


def correct_run(rng: random.Random, *, count: int) -> tuple[list[Change], list[Operation]]:
    """Operations that took effect one second apart, each begun and answered within a second of that."""
    register, operations = Register(), []
    for number in range(count):
        key = rng.choice(KEYS)
        state = register.state(key)
        weights = (1, 5, 2, 5) if state else (5, 1, 1, 2)
        action = rng.choices((Action.CREATE, Action.UPDATE, Action.DELETE, Action.GET), weights)[0]
        expected = (state.revision if state and rng.random() < 0.8 else START) if action is Action.UPDATE else None
        intent = Intent(action=action, key=key, token=f"t{number}", expected=expected)
        invoked, answered = number - rng.random(), number + rng.random()
        outcome = register.do(intent)
        operations.append(Operation(client="x", intent=intent, invoked=invoked, answered=answered, outcome=outcome))
    return register.changes, operations


def disturbed(rng: random.Random, operations: Sequence[Operation]) -> list[Operation]:
    """The same with one operation that is forgotten, moved in time, or exchanged for that of another read."""
    changed = list(operations)
    index = rng.randrange(len(changed))
    chosen = changed[index]
    match rng.choice(("forget", "delay", "exchange")):
        case "forget" if chosen.intent.action is not Action.DELETE:
            changed[index] = replace(chosen, outcome=Outcome(result=Result.UNKNOWN), answered=math.inf)
        case "delay":
            shift = rng.uniform(-5, 5)
            changed[index] = replace(chosen, invoked=chosen.invoked + shift, answered=chosen.answered + shift)
        case "exchange":
            reads = [each for each in operations if each.intent.action is Action.GET]
            if chosen in reads:
                other = rng.choice([each for each in reads if each.intent.key == chosen.intent.key])
                changed[index] = replace(chosen, outcome=other.outcome)
    return changed


class Search:
    """Tries every order that respects time, with the writes in the order of their revisions."""

    def __init__(self, changes: Sequence[Change], operations: Sequence[Operation]) -> None:
        self._timeline = Timeline(changes, start=START)
        self._end = START + len(changes)
        self._revisions = {id(each): self._revision(each, changes) for each in operations}
        self._needed = [each for each in operations if self._must_be_placed(each)]

    def succeeds(self) -> bool:
        return self._place(frozenset(), START, set())

    def _revision(self, operation: Operation, changes: Sequence[Change]) -> int | None:
        for change in changes:
            deleted = change.kind is Kind.DELETED and change.uid == operation.outcome.uid
            if deleted or (change.kind is not Kind.DELETED and change.value.whole == operation.intent.token):
                return change.revision
        return None

    def _must_be_placed(self, operation: Operation) -> bool:
        return operation.outcome.result is not Result.UNKNOWN or self._revisions[id(operation)] is not None

    def _place(self, placed: frozenset[int], now: int, failed: set[tuple[frozenset[int], int]]) -> bool:
        if len(placed) == len(self._needed):
            return now == self._end
        if (placed, now) in failed:
            return False
        for index in self._next(placed):
            after = self._after(self._needed[index], now)
            if after is not None and self._place(placed | {index}, after, failed):
                return True
        failed.add((placed, now))
        return False

    def _next(self, placed: frozenset[int]) -> list[int]:
        left = [index for index in range(len(self._needed)) if index not in placed]
        soonest = min(self._needed[index].answered for index in left)
        return [index for index in left if self._needed[index].invoked <= soonest]

    def _after(self, operation: Operation, now: int) -> int | None:
        """The revision after the operation, if it can happen at this one."""
        revision = self._revisions[id(operation)]
        if revision is not None:
            return revision if revision == now + 1 else None
        state, outcome = self._timeline.state(operation.intent.key, now), operation.outcome
        fits = {
            Result.OK: state == outcome.version,
            Result.ABSENT: state is None,
            Result.EXISTS: state is not None,
            Result.CONFLICT: state is None or state.revision != operation.intent.expected,
        }
        return now if fits[outcome.result] else None


def agreement(seed: int, *, disturb: bool) -> bool:
    """Whether a history is found good, once both ways agree on it."""
    rng = random.Random(seed)
    changes, operations = correct_run(rng, count=rng.randint(4, 10))
    for _ in range(rng.randint(1, 6) if disturb else 0):
        operations = disturbed(rng, operations)
    found = check_operations(Timeline(changes, start=START), operations)
    assert (found == []) == Search(changes, operations).succeeds(), (seed, [str(violation) for violation in found])
    return found == []


def test_correct_histories_are_found_good_both_ways() -> None:
    assert all(agreement(seed, disturb=False) for seed in range(500))


@pytest.mark.parametrize("part", range(4))
def test_disturbed_histories_are_judged_alike(part: int) -> None:
    verdicts = [agreement(seed, disturb=True) for seed in range(part * 1000, part * 1000 + 1000)]
    assert 150 < verdicts.count(False) < 750, "of good and of bad ones there should be many"
