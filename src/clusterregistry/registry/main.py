"""The commands of ``clusterregistry``; ``cli.entry`` calls ``main`` and ends the process with its status."""

from __future__ import annotations

from clusterregistry.agent.commands import COMMANDS as AGENT_COMMANDS
from clusterregistry.apiserver.cli.program import server_program
from clusterregistry.cli.subcommand import Listed
from clusterregistry.registry.product import PRODUCT

COMMANDS: tuple[Listed, ...] = (*AGENT_COMMANDS,)
"""The commands for clients of a registry. Each is loaded when it is called."""

PROGRAM = server_program(PRODUCT, COMMANDS)
main = PROGRAM.main
