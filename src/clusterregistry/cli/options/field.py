"""Declares options as fields of frozen dataclasses, and indexes them for the readers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from clusterregistry.cli.options.problems import Vocabulary
from clusterregistry.cli.options.value_types import Kind

T = TypeVar("T")

_KEY = "option"


def option(
    default: T,
    *,
    kind: Kind[T],
    help: str,  # noqa: A002 - what it is called wherever options are declared
    **details: Any,
) -> T:
    """Declares a field that is an option. ``details`` are further fields of ``Details``."""
    declared: T = field(default=default, metadata={_KEY: Details(kind=kind, help=help, **details)})
    return declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What an option declares beside its name, type and default."""

    kind: Kind[Any]
    help: str
    default_shown: str = ""
    """Describes a default that is found at start."""
    example: str = ""
    flag: str = ""
    """The name of the flag where the field cannot have that name, such as ``from``."""
    short: str = ""
    """A second flag of one letter."""
    commands: frozenset[str] = frozenset()
    """The commands that take the option; empty: every command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option: a field of a group."""

    field: str
    default: Any
    details: Details

    @property
    def flag(self) -> str:
        return self.details.flag or self.field.replace("_", "-")

    @property
    def default_text(self) -> str:
        return self.details.default_shown or self.details.kind.show(self.default)


def options_of(group: type[Any]) -> list[Option]:
    """Returns the options of a group, in the order of their declaration."""
    return [
        Option(field=each.name, default=each.default, details=each.metadata[_KEY])
        for each in dataclasses.fields(group)
        if _KEY in each.metadata
    ]


def build(shape: type[T], values: Mapping[str, Any]) -> T:
    """Makes a group, or a dataclass of groups, from values by field; the defaults fill the rest."""
    given: dict[str, Any] = {each.field: values[each.field] for each in options_of(shape) if each.field in values}
    for name, group in groups_of(shape).items():
        given[name] = build(group, values)
    return shape(**given)


def groups_of(shape: type[Any]) -> dict[str, type[Any]]:
    """Returns the groups of a dataclass of groups, by field; each field has its group as default factory."""
    factories: dict[str, Any] = {each.name: each.default_factory for each in dataclasses.fields(shape)}
    return {name: factory for name, factory in factories.items() if isinstance(factory, type)}


def title(group: type[Any]) -> str:
    """Returns the heading of a group: the first line of its docstring."""
    return (group.__doc__ or "").splitlines()[0].rstrip(".")


@dataclass(frozen=True, kw_only=True)
class OptionSet(Generic[T]):
    """The options of a command: those of ``shape``, which is a group or a dataclass of groups, and borrowed ones."""

    shape: type[T]
    program: str = ""
    """The name of the program: it stands for ``PROGRAM`` in the texts of options."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of this program, by field, where they differ from those of ``shape``."""
    borrowed: tuple[Option, ...] = ()
    """Options of other groups that the command takes too; ``build`` ignores them."""
    environment_prefix: str = ""
    """Begins the names of the environment variables; empty: the command reads none."""
    not_options: frozenset[str] = frozenset()
    """Variables with that prefix that something else reads."""
    command_line_only: tuple[str, ...] = ()
    """Flags that the command handles before it reads the options, such as ``help``."""
    vocabulary: Vocabulary = field(default_factory=Vocabulary)

    @cached_property
    def groups(self) -> Mapping[str, type[Any]]:
        return groups_of(self.shape) or {"": self.shape}

    @cached_property
    def by_group(self) -> Mapping[str, list[Option]]:
        return {name: [self._named(each) for each in options_of(group)] for name, group in self.groups.items()}

    def _named(self, option: Option) -> Option:
        details = replace(
            option.details,
            help=self.name_program(option.details.help),
            default_shown=self.name_program(option.details.default_shown),
            example=self.name_program(option.details.example),
        )
        return replace(option, default=self.defaults.get(option.field, option.default), details=details)

    def name_program(self, text: str) -> str:
        """Returns ``text`` with the name of the program in the place of ``PROGRAM``, and its variables' prefix."""
        return text.replace("PROGRAM_", self.environment_prefix).replace("PROGRAM", self.program)

    def title(self, name: str) -> str:
        """Returns the heading of a group."""
        return self.name_program(title(self.groups[name]))

    def build(self, values: Mapping[str, Any]) -> T:
        """Makes the options from values by field; the defaults fill the rest."""
        return build(self.shape, {**self.defaults, **values})

    @cached_property
    def by_flag(self) -> Mapping[str, Option]:
        own = [each for group in self.by_group.values() for each in group]
        return {each.flag: each for each in (*own, *self.borrowed)}

    @cached_property
    def _by_short(self) -> Mapping[str, Option]:
        return {each.details.short: each for each in self.by_flag.values() if each.details.short}

    def find(self, name: str) -> Option | None:
        """Returns the option of a flag, by its name or by its letter."""
        return self.by_flag.get(name) or self._by_short.get(name)

    def variable(self, flag: str) -> str:
        """Returns the environment variable of a flag."""
        return self.environment_prefix + flag.upper().replace("-", "_")
