"""The commands of ``clusterregistry``; ``cli.entry`` calls ``main`` and ends the process with its status."""

from __future__ import annotations

from clusterregistry.apiserver.cli.program import server_program
from clusterregistry.registry.product import PRODUCT

PROGRAM = server_program(PRODUCT)
main = PROGRAM.main
