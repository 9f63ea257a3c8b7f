"""The cluster registry's product for tests: its options, loaded and resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clusterregistry.apiserver import options
from clusterregistry.apiserver.cli import completion
from clusterregistry.apiserver.options import CompletedOptions, resolution
from clusterregistry.apiserver.options.resolution import Resolved
from clusterregistry.cli.completion.model import Command
from clusterregistry.registry.product import PRODUCT

OPTIONS = PRODUCT.options
ETCD_PREFIX: str = OPTIONS.defaults["etcd_prefix"]


def load(arguments: Sequence[str], environ: Mapping[str, str], *, aggregated: bool = False) -> CompletedOptions:
    return options.load(arguments, environ, OPTIONS, aggregated=aggregated)


def resolve(arguments: Sequence[str], environ: Mapping[str, str], **further: Any) -> Resolved:
    return resolution.resolve(arguments, environ, OPTIONS, **further)


def program() -> Command:
    """What a shell completes of ``clusterregistry``."""
    return completion.program(OPTIONS)
