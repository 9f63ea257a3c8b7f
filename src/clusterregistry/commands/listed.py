"""The commands of this package, by name and summary. Each is loaded when it is called."""

from __future__ import annotations

from typing import Any

from clusterregistry.cli.subcommand import Listed, Subcommand


def _import() -> Subcommand[Any]:
    from clusterregistry.commands.import_command import IMPORT  # noqa: PLC0415 - loaded when it is called

    return IMPORT


def _kubeconfig() -> Subcommand[Any]:
    from clusterregistry.commands.kubeconfig_command import KUBECONFIG  # noqa: PLC0415

    return KUBECONFIG


COMMANDS = (
    Listed(name="import", summary="register clusters from kubeconfigs", load=_import),
    Listed(name="kubeconfig", summary="make a kubeconfig of registered clusters", load=_kubeconfig),
)
