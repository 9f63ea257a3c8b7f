"""How long the disk takes to keep what was written: below that no durable write can be."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.goals import short
from benchmarks.markdown import text_table
from benchmarks.meter import Record, latencies

_WRITE = b"x" * 2048
_MOST = 3900
"""Writes that fit into what is written beforehand."""


def measure(directory: Path, *, seconds: float) -> dict[str, Record]:
    """Small writes that each wait for the disk: in files that grow, and in one that has its size, as a log may."""
    return {
        "append, fsync": _measure(directory, os.fsync, seconds=seconds),
        "append, fdatasync": _measure(directory, os.fdatasync, seconds=seconds),
        "preallocated, fdatasync": _measure(directory, os.fdatasync, seconds=seconds, preallocated=True),
    }


def _measure(directory: Path, sync: Callable[[int], None], *, seconds: float, preallocated: bool = False) -> Record:
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        if preallocated:
            os.posix_fallocate(file.fileno(), 0, 64 << 20)
            file.write(bytes(8 << 20))
            os.fsync(file.fileno())
            file.seek(0)
        waited = list(_writes(file.fileno(), sync, seconds=seconds))
    return {"per_s": len(waited) / sum(waited)} | latencies(waited)


def _writes(file: int, sync: Callable[[int], None], *, seconds: float) -> Iterator[float]:
    until = time.monotonic() + seconds
    for _ in range(_MOST):
        begun = time.monotonic()
        os.write(file, _WRITE)
        sync(file)
        yield time.monotonic() - begun
        if time.monotonic() > until:
            return


def table(found: dict[str, Record]) -> str:
    fields = ("per_s", "p50_ms", "p95_ms", "p99_ms", "max_ms")
    rows = [[name, *(short(record[field]) for field in fields)] for name, record in found.items()]
    return text_table([["2 KB write", "per s", "p50 ms", "p95 ms", "p99 ms", "longest ms"], *rows])
