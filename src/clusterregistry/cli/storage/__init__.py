"""``clusterregistry storage``: what an operator does with the data beside serving it. One command a module.

The commands work on files and stores and must not need a running server; those that only read work beside one.
They read options with the kinds and the sources of ``clusterregistry.options``, and tell every mistake at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs one storage command and answers the exit status."""
    # Late: a server that starts, or a version that is asked for, need not wait for these modules.
    from clusterregistry.cli.storage import dispatching  # noqa: PLC0415

    return dispatching.run(arguments, environ)
