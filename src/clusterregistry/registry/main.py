"""Runs the cluster registry's commands; ``entry`` ends the process with their status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterregistry.apiserver.cli import program
from clusterregistry.registry.product import PRODUCT


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs one command and returns its exit status. Never raises."""
    return program.run(arguments, environ, PRODUCT)
