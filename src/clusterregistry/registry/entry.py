"""The entry point of ``clusterregistry``."""

from __future__ import annotations

from typing import NoReturn

from clusterregistry.cli import entry


def run() -> NoReturn:
    entry.run("clusterregistry.registry.main")
