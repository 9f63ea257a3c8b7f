"""The commands of this package, by name and summary. Each is loaded when it is called."""

from __future__ import annotations

from typing import Any

from clusterregistry.cli.subcommand import Listed, Subcommand


def _join() -> Subcommand[Any]:
    from clusterregistry.agent.join_command import JOIN  # noqa: PLC0415 - loaded when it is called

    return JOIN


def _agent() -> Subcommand[Any]:
    from clusterregistry.agent.agent_command import AGENT  # noqa: PLC0415

    return AGENT


def _create() -> Subcommand[Any]:
    from clusterregistry.agent.join_token import CREATE  # noqa: PLC0415

    return CREATE


def _list() -> Subcommand[Any]:
    from clusterregistry.agent.join_token import LIST  # noqa: PLC0415

    return LIST


def _delete() -> Subcommand[Any]:
    from clusterregistry.agent.join_token import DELETE  # noqa: PLC0415

    return DELETE


COMMANDS = (
    Listed(
        name="join-token",
        summary="make, list and delete the tokens with which members join",
        help="Makes, lists and deletes bootstrap tokens: with one, a member joins a registry as one cluster.",
        commands=(
            Listed(name="create", summary="make a token for a cluster, and print it once", load=_create),
            Listed(name="list", summary="list tokens, without their secrets", load=_list),
            Listed(name="delete", summary="delete tokens", load=_delete),
        ),
    ),
    Listed(name="join", summary="join a registry from a member, and make its agent", load=_join),
    Listed(
        name="agent",
        summary="observe the cluster that this runs in, and report to a registry",
        load=_agent,
        is_service=True,
    ),
)
