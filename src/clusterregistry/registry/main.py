"""The commands of ``clusterregistry``; ``cli.entry`` calls ``main`` and ends the process with its status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterregistry.apiserver.cli import aggregated, help_text, standalone, storage
from clusterregistry.cli import version
from clusterregistry.cli.program import Command, Program


def _complete(arguments: Sequence[str], environ: Mapping[str, str]) -> int:  # noqa: ARG001 - as every command
    # Late: a server that starts does not need these modules.
    from clusterregistry.cli.completion import command  # noqa: PLC0415
    from clusterregistry.registry import completion  # noqa: PLC0415

    return command.run(arguments, completion.program)


COMMANDS: dict[str, Command] = {
    "standalone": standalone.run,
    "aggregated": aggregated.run,
    "storage": storage.run,
    "version": version.run,
    "completion": _complete,
}

main = Program(name="clusterregistry", help=help_text.PROGRAM, commands=COMMANDS).main
