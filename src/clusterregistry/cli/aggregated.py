"""``clusterregistry aggregated``: promised, and honest about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterregistry.cli import exits, help_texts
from clusterregistry.cli.printing import complain, say


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:  # noqa: ARG001 - as every command
    if any(argument in {"-h", "--help"} for argument in arguments):
        say(help_texts.AGGREGATED.rstrip())
        return exits.OK
    complain(
        "clusterregistry aggregated: not available yet.",
        "`clusterregistry standalone` serves the same API on its own.",
    )
    return exits.USAGE
