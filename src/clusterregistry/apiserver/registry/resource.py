"""What makes a resource: its names, its versions, its verbs and its strategy.

A resource is described once, in a file of its own, and listed by its product. Types, conversion and the
stored version are separate: objects are stored in ``storage_version`` and each served version says
how it converts to and from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from clusterregistry.apimachinery.meta.names import SUBDOMAINS, NameRule
from clusterregistry.apimachinery.schema.schemas import Object as ObjectSchema
from clusterregistry.apiserver.registry.strategy import Strategy

Convert = Callable[[dict[str, Any]], dict[str, Any]]
Decode = Callable[[dict[str, Any]], list[str]]
Cell = Callable[[dict[str, Any]], Any]

MAIN_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""Every verb on a collection and its objects, in kube-apiserver's order."""

STATUS_VERBS = ("get", "patch", "update")


def same(obj: dict[str, Any]) -> dict[str, Any]:
    """The conversion between a version and itself."""
    return obj


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of ``kubectl get``. ``cell`` reads its value from an object, None when it has none.

    It is not shown managed fields.

    Where ``is_age``, its cell is an RFC 3339 time and shown as an age. A kind has one such column at most.
    """

    name: str
    type: str
    cell: Cell
    description: str
    format: str = ""
    priority: int = 0
    is_age: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One served version: its schema (spec, status, ...), columns and conversion to the stored version."""

    name: str
    schema: ObjectSchema
    columns: Sequence[Column] = ()
    decode: Decode | None = None
    """Brings what a client sent into the form of the kind, in place; gives the paths of what is unknown.

    Raises ShapeError. None: what the schema does not know is pruned, and the strategy validates the types.
    """
    to_storage: Convert = same
    from_storage: Convert = same

    age_at: int | None = field(init=False)
    """Which of the columns is the age, if one is."""

    def __post_init__(self) -> None:
        ages = [at for at, column in enumerate(self.columns) if column.is_age]
        if len(ages) > 1:
            raise ValueError(f"the table of version {self.name} has more than one age")
        object.__setattr__(self, "age_at", ages[0] if ages else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A kind that is served, root-scoped, and what can be done with it. The first version is the preferred one."""

    group: str
    kind: str
    plural: str
    singular: str
    versions: Sequence[Version]
    verbs: Sequence[str] = MAIN_VERBS
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    names: NameRule = SUBDOMAINS
    native: bool = False
    """Whether it behaves as a kind that is compiled into kube-apiserver, rather than as a custom resource.

    Native kinds also travel as protobuf (``codecs.kubernetes_messages``), a body need not say that it is of the kind,
    and one that is of another kind is 400. Their objects have no generation of the server's making, finalizers need a
    domain, and some answers are worded and sorted differently.
    """

    @property
    def list_kind(self) -> str:
        return self.kind + "List"

    @property
    def qualified_name(self) -> str:
        """``PLURAL.GROUP``, as kubectl spells it in full."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def is_stored(self) -> bool:
        """Whether there are objects of it; else it is a question that is answered when it is asked."""
        return False

    @property
    def has_status(self) -> bool:
        """Whether the status is a subresource."""
        return False

    def version(self, name: str) -> Version | None:
        return next((version for version in self.versions if version.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Definition):
    """A kind whose objects are stored."""

    storage_version: str
    strategy: Strategy
    status_strategy: Strategy | None = None
    default_roles: Sequence[str] = ("admin", "edit", "view")
    """The default roles with rights on it: ``view`` reads, ``edit`` writes, ``admin`` writes the status too."""
    read_your_writes: bool = False
    """Whether a write is answered only once this server has seen it, on any storage: for what it acts on itself."""

    @property
    def is_stored(self) -> bool:
        return True

    @property
    def stored_as(self) -> Version:
        """The storage version itself."""
        return next(version for version in self.versions if version.name == self.storage_version)

    @property
    def has_status(self) -> bool:
        return self.status_strategy is not None
