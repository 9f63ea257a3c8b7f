"""The program of a product: its commands and its help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from clusterregistry.apiserver.cli import aggregated, help_text, standalone, storage
from clusterregistry.apiserver.product import Product
from clusterregistry.cli import version
from clusterregistry.cli.program import Program
from clusterregistry.cli.subcommand import Listed


def server_program(product: Product, commands: Sequence[Listed] = ()) -> Program:
    """Makes the program that runs a product as a server, and looks after its data.

    ``commands`` are further ones, such as those for clients of the server.
    """
    return Program(
        name=product.name,
        help=help_text.program(product, commands),
        commands={
            "standalone": partial(standalone.run, product),
            "aggregated": partial(aggregated.run, product),
            "storage": partial(storage.run, product=product),
            **{each.name: each.command(product.name) for each in commands},
            "version": partial(version.run, program=product.name, version=product.version),
            "completion": partial(_complete, product, commands),
        },
    )


def _complete(
    product: Product,
    commands: Sequence[Listed],
    arguments: Sequence[str],
    environ: Mapping[str, str],  # noqa: ARG001 - as every command
) -> int:
    # Late: a server that starts does not need these modules.
    from clusterregistry.apiserver.cli import completion  # noqa: PLC0415
    from clusterregistry.cli.completion import command  # noqa: PLC0415

    return command.run(arguments, lambda: completion.program(product.options, commands))
