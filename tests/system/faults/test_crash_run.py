"""Twenty crashes in the midst of work; ``make crash-test`` is the same with two hundred."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.faults.crash_run import crash

ROUNDS = 20
SEED = 20


@pytest.mark.timeout(900)
async def test_a_server_that_is_killed_again_and_again_keeps_its_word(tmp_path: Path) -> None:
    progress: list[str] = []
    verdict = await crash(tmp_path, rounds=ROUNDS, seed=SEED, say=progress.append)
    assert verdict.violations == [], "\n".join([*progress, verdict.report()])
    # Enough happened for that to mean something, and each crash cut the watches.
    assert verdict.acknowledged > 10 * ROUNDS
    assert verdict.unknown > ROUNDS
    assert verdict.connections > 2 * ROUNDS
    # Namespaced objects had their part, and some crashes came when a namespace was being deleted.
    assert verdict.in_namespaces > 5 * ROUNDS
    assert verdict.removed_namespaces > 2
    assert verdict.by_server > verdict.removed_namespaces
