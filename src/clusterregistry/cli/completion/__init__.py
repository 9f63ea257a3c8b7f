"""``completion bash|zsh|fish``: scripts that have a shell complete the commands, flags and values of a program.

A program is described once (``model``), from the options and commands as they are declared; each shell has a module
that writes the description in its language. This package must not know what any command does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:  # noqa: ARG001 - as every command
    """``clusterregistry completion``."""
    # Late: a server that starts need not wait for these modules.
    from clusterregistry.cli.completion import command  # noqa: PLC0415
    from clusterregistry.registry import completion  # noqa: PLC0415

    return command.run(arguments, completion.program)
