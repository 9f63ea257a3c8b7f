"""Declares options as dataclass fields, and finds them again."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar

from clusterregistry.cli.options.value_types import Kind

T = TypeVar("T")

_KEY = "option"


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What an option says of itself beside its name, type and default."""

    kind: Kind[Any]
    help: str
    default_shown: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option: a field of a group, and all the names it goes by."""

    field: str
    default: Any
    details: Details
    variable: str = ""
    """Its environment variable, where it has one."""

    @property
    def flag(self) -> str:
        return self.field.replace("_", "-")

    @property
    def default_text(self) -> str:
        return self.details.default_shown or self.details.kind.show(self.default)


def option(
    default: T,
    *,
    kind: Kind[T],
    help: str,  # noqa: A002 - what it is called wherever options are declared
    default_shown: str = "",
    example: str = "",
) -> T:
    """A field that is an option. ``default_shown`` describes a default that is found at start."""
    details = Details(kind=kind, help=help, default_shown=default_shown, example=example)
    declared: T = dataclasses.field(default=default, metadata={_KEY: details})
    return declared


def options_of(group: type[Any]) -> list[Option]:
    """The options of a group, in the order they are declared."""
    return [
        Option(field=each.name, default=each.default, details=each.metadata[_KEY]) for each in dataclasses.fields(group)
    ]
