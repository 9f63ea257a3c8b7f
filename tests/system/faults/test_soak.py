"""The soak test in a short form, and its arithmetic. ``make soak`` runs it for an hour on each engine."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.apiserver.storage.etcd_servers import NEEDS_ETCD
from tests.system.faults import soak
from tests.system.faults.soak import FIGURES, Plan

MEMORY = FIGURES[0]
SECONDS, RATE = 30.0, 400.0
MOST_MEMORY = 10_000.0
"""Kilobytes."""


def samples(*, growth: float, noise: float, seconds: int = 1800) -> list[tuple[float, float]]:
    """Memory that grows by so many KB an hour, under noise that lasts for some samples."""
    rng = random.Random(1)
    level, points = 0.0, []
    for second in range(0, seconds, 2):
        level = 0.7 * level + rng.gauss(0, noise)
        points.append((float(second), 60_000 + growth * second / 3600 + level))
    return points


@pytest.mark.parametrize("noise", [0.0, 100.0, 500.0])
def test_a_leak_of_a_few_megabytes_an_hour_is_found(noise: float) -> None:
    found = soak.slope(MEMORY, samples(growth=9_000, noise=noise))
    assert found.grows
    assert "GROWS" in str(found)
    assert abs(found.per_hour - 9_000) <= found.doubt + 1


@pytest.mark.parametrize("noise", [0.0, 100.0, 500.0, 3_000.0])
def test_noise_is_no_leak(noise: float) -> None:
    found = soak.slope(MEMORY, samples(growth=0, noise=noise))
    assert not found.grows
    assert "steady" in str(found)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", [pytest.param("sqlite"), pytest.param("etcd", marks=NEEDS_ETCD)])
async def test_a_server_under_load_does_not_grow_beyond_doubt(engine: str, tmp_path: Path) -> None:
    soaked = await soak.soak(tmp_path, Plan(engine=engine, seconds=SECONDS, objects=200, rate=RATE), say=print)
    assert soaked.writes > 500
    assert not soaked.surprises, soak.report(engine, soaked)
    assert not soaked.tracebacks, soak.report(engine, soaked)
    memory, *others = soaked.slopes
    assert not [each for each in others if each.grows], soak.report(engine, soaked)
    # Half a minute says little of memory, which is still finding its place: only a leak of a kilobyte a write shows.
    assert (memory.per_hour - memory.doubt) * memory.hours < MOST_MEMORY, soak.report(engine, soaked)
