"""The entry point of ``crinit``."""

from __future__ import annotations

from typing import NoReturn

from clusterregistry.cli import entry


def run() -> NoReturn:
    entry.run("clusterregistry.crinit.main", interrupted=3)
