"""Options about the options, and about what the program says."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import FILE, VERBOSITY, choice


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralOptions:
    """General."""

    config: Path | None = option(
        None,
        kind=FILE,
        help="A YAML file with options: each key is a flag's name without the dashes, such as `secure-port: 8443`. "
        "Flags and environment variables count more than the file.",
        default_shown="no file",
        example="--config=registry.yaml",
    )
    v: int = option(
        0,
        kind=VERBOSITY,
        help="How much the log tells: 0 is for operators, 1 and more for those who look for a fault. "
        "A bare `-v` means 1.",
        example="-v",
    )
    logging_format: Literal["text", "json"] = option(
        "text",
        kind=choice("text", "json"),
        help="How the log is written on standard error: `text` for people, or `json`, one object a line with the keys "
        "of kube-apiserver's logs (`ts`, `caller`, `msg`, `v`, `err`).",
        example="--logging-format=json",
    )
