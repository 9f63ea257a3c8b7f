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


def _create_user() -> Subcommand[Any]:
    from clusterregistry.commands.user_command import CREATE  # noqa: PLC0415

    return CREATE


def _list_users() -> Subcommand[Any]:
    from clusterregistry.commands.user_command import LIST  # noqa: PLC0415

    return LIST


def _export() -> Subcommand[Any]:
    from clusterregistry.commands.export_command import EXPORT  # noqa: PLC0415

    return EXPORT


COMMANDS = (
    Listed(name="import", summary="register clusters from kubeconfigs, or from a file of export", load=_import),
    Listed(name="export", summary="write the clusters to a file", load=_export),
    Listed(name="kubeconfig", summary="make a kubeconfig of registered clusters", load=_kubeconfig),
    Listed(
        name="user",
        summary="make users with client certificates, and list them",
        help="Users of the registry with client certificates.",
        commands=(
            Listed(name="create", summary="make a user, with a kubeconfig", load=_create_user),
            Listed(name="list", summary="list the requests for certificates", load=_list_users),
        ),
    ),
)
