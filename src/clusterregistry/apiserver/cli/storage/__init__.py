"""``storage``: backups, checks, copies and migrations of the data. One command a module.

The commands work on files and stores and must not need a running server; those that only read work beside one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterregistry.apiserver.product import Product


def run(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    """Runs one storage command and returns the exit status."""
    # Late: a server that starts, or `version`, does not need these modules.
    from clusterregistry.apiserver.cli.storage import dispatch  # noqa: PLC0415

    return dispatch.run(arguments, environ, product)
