"""``storage``: what an operator does with the data beside serving it. One command a module.

The commands work on files and stores and must not need a running server; those that only read work beside one.
They read options with the value types and sources of ``apiserver.options``, and report every mistake at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterregistry.apiserver.options.groups import OptionSet


def run(arguments: Sequence[str], environ: Mapping[str, str], known: OptionSet) -> int:
    """Runs one storage command and answers the exit status."""
    # Late: a server that starts, or a version that is asked for, need not wait for these modules.
    from clusterregistry.apiserver.cli.storage import dispatch  # noqa: PLC0415

    return dispatch.run(arguments, environ, known)
