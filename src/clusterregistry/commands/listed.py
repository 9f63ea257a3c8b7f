"""The commands of this package, by name and summary. Each is loaded when it is called."""

from __future__ import annotations

from typing import Any

from clusterregistry.cli.subcommand import Listed, Subcommand


def _import() -> Subcommand[Any]:
    from clusterregistry.commands.import_command import IMPORT  # noqa: PLC0415 - loaded when it is called

    return IMPORT


COMMANDS = (Listed(name="import", summary="register clusters from kubeconfigs", load=_import),)
