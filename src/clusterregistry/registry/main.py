"""The commands of ``clusterregistry``; ``cli.entry`` calls ``main`` and ends the process with its status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clusterregistry.agent.commands import COMMANDS as AGENT_COMMANDS
from clusterregistry.apiserver.cli.program import server_program
from clusterregistry.cli.subcommand import Listed
from clusterregistry.commands.listed import COMMANDS as COMMANDS_FOR_PEOPLE
from clusterregistry.registry.product import PRODUCT

if TYPE_CHECKING:
    from clusterregistry.cli.subcommand import Subcommand


def _access_check() -> Subcommand[Any]:
    from clusterregistry.controllers.access import check_command  # noqa: PLC0415 - a server does not wait for it

    return check_command.load()


def _controller() -> Subcommand[Any]:
    from clusterregistry.controllers import command  # noqa: PLC0415 - a server does not wait for it

    return command.load()


COMMANDS: tuple[Listed, ...] = (
    Listed(name="controller", summary="observe clusters and write their status", load=_controller, is_service=True),
    Listed(
        name="access",
        summary="try the credentials for clusters",
        help="Credentials for clusters by the rules of an access.yaml.",
        commands=(Listed(name="check", summary="try the access to clusters", load=_access_check),),
    ),
    *AGENT_COMMANDS,
    *COMMANDS_FOR_PEOPLE,
)
"""The commands for clients of a registry. Each is loaded when it is called."""

PROGRAM = server_program(PRODUCT, COMMANDS)
main = PROGRAM.main
