"""The cluster registry's product for tests: its options, loaded and resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clusterregistry.apiserver.cli import completion
from clusterregistry.apiserver.options import CompletedOptions, Options
from clusterregistry.apiserver.options import completion as options
from clusterregistry.cli.completion.model import Command
from clusterregistry.cli.options.sources import Resolved
from clusterregistry.registry.main import COMMANDS
from clusterregistry.registry.product import PRODUCT

OPTIONS = PRODUCT.options
ETCD_PREFIX: str = OPTIONS.defaults["etcd_prefix"]


def load(arguments: Sequence[str], environ: Mapping[str, str], *, aggregated: bool = False) -> CompletedOptions:
    return options.load(arguments, environ, options=OPTIONS, aggregated=aggregated)


def resolve(arguments: Sequence[str], environ: Mapping[str, str], **further: Any) -> Resolved[Options]:
    return options.resolve(arguments, environ, options=OPTIONS, **further)


def program() -> Command:
    """What a shell completes of ``clusterregistry``."""
    return completion.program(OPTIONS, COMMANDS)
