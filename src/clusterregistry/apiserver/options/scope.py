"""Which options a command has: `standalone` knows users itself, `aggregated` leaves them to the host cluster."""

from __future__ import annotations

from clusterregistry.apiserver.options import host_cluster
from clusterregistry.apiserver.options.groups import OptionSet
from clusterregistry.cli.options.field import Option

LEFT_TO_THE_HOST = ("authentication", "authorization", "oidc", "webhooks")
"""Groups of which aggregated mode takes only what ``host_cluster.OURS`` names."""


def by_group(known: OptionSet, *, aggregated: bool) -> dict[str, list[Option]]:
    """The options that a command takes, in the order of --help. Groups without any are left out."""
    groups = known.by_group.items()
    taken = {name: [each for each in options if _takes(name, each, aggregated)] for name, options in groups}
    return {name: options for name, options in taken.items() if options}


def _takes(group: str, option: Option, aggregated: bool) -> bool:  # noqa: FBT001 - private
    if not aggregated:
        return group != "host_cluster"
    return group not in LEFT_TO_THE_HOST or option.field in host_cluster.OURS
