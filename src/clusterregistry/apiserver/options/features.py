"""Options that turn single features on and off."""

from __future__ import annotations

from dataclasses import dataclass

from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import BOOLEAN


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureOptions:
    """Features."""

    enable_watch: bool = option(
        True,
        kind=BOOLEAN,
        help="Whether watches are served. When false a watch is answered with 405, and clients have to poll.",
        example="--enable-watch=false",
    )
