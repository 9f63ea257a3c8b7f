"""Options that turn single features on and off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import BOOLEAN, choice


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureOptions:
    """Features."""

    secret_lint: Literal["warn", "reject", "off"] = option(
        "warn",
        kind=choice("warn", "reject", "off"),
        help="What to do with an object that seems to hold credentials (private keys, tokens, passwords): answer with "
        "a warning, reject it, or nothing. The registry is a list that many read: it holds pointers to credentials, "
        "never credentials.",
        example="--secret-lint=reject",
    )
    enable_watch: bool = option(
        True,
        kind=BOOLEAN,
        help="Whether watches are served. When false a watch is answered with 405, and clients have to poll.",
        example="--enable-watch=false",
    )
