"""The definition of a resource: its names, versions, verbs and strategy.

A product lists its resources. Objects are stored in ``storage_version``; each version has the conversion to and from
it. Versions that are known but not served still decode what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clusterregistry.apimachinery.meta.names import SUBDOMAINS, NameRule
from clusterregistry.apimachinery.schema.schemas import Object as ObjectSchema
from clusterregistry.apiserver.registry.object_groups import Grouping
from clusterregistry.apiserver.registry.strategy import Admission, CheckDelete, DeletionStrategy, Strategy

Convert = Callable[[dict[str, Any]], dict[str, Any]]
Decode = Callable[[dict[str, Any]], list[str]]
Cell = Callable[[dict[str, Any]], Any]
Inherit = Callable[[dict[str, Any], dict[str, Any]], None]
SelectField = Callable[[dict[str, Any]], str]
"""Reads the value of a selectable field from an object in the storage version; empty where the object has none."""

MAIN_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""Every verb on a collection and its objects, in kube-apiserver's order."""

STATUS_VERBS = ("get", "patch", "update")
VIEW_VERBS = ("get",)


def same(obj: dict[str, Any]) -> dict[str, Any]:
    """The conversion between a version and itself."""
    return obj


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of ``kubectl get``. ``cell`` reads its value from an object without managed fields; None: no value.

    With ``is_age`` the value is an RFC 3339 time that is shown as an age.
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
    group: str | None = None
    """The group in which the version is served; None: that of the resource. Events are served in two groups."""
    columns: Sequence[Column] = ()
    decode: Decode | None = None
    """Brings an object from a client into the form of the kind, in place; returns the paths of unknown fields.

    Raises ShapeError. None: unknown fields are pruned by the schema, and the strategy validates the types.
    """
    to_storage: Convert = same
    """Takes any object of this version, valid or not. Neither conversion changes its argument."""
    from_storage: Convert = same
    field_labels: Mapping[str, str] | None = None
    """The selectable fields as this version names them, each with its name among those of the resource.

    None: all of them, by the same names.
    """
    from_storage_whole: Convert | None = None
    """Like ``from_storage``, with what the version cannot express in annotations; None: it can express everything.

    ``to_storage`` takes these annotations back. Objects are stored so where the version is not the storage version.
    """
    inherit: Inherit | None = None
    """Adds, in place, to an object that replaces a stored one what clients of this version need not know of.

    Takes the object of a PUT, and the stored one in the storage version.
    """
    strategy: Strategy | None = None
    """The rules of writes in this version; None: those of the resource. Its objects come in the storage version.

    Its errors name the fields of this version.
    """
    subresource_strategies: Mapping[str, Strategy] = field(default_factory=dict)
    """The same for subresources."""

    ages: tuple[int, ...] = field(init=False)
    """The positions of ages among the columns."""

    def __post_init__(self) -> None:
        ages = tuple(at for at, column in enumerate(self.columns) if column.is_age)
        object.__setattr__(self, "ages", ages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subresource:
    """A part of an object that is read and written on a path of its own, such as ``status``."""

    strategy: Strategy
    verbs: Sequence[str] = STATUS_VERBS
    admission: Admission | None = None
    """What a write to it needs besides being authorized and valid."""


Render = Callable[[dict[str, Any], Sequence[str]], dict[str, Any]]
"""Makes an object of another kind from an object in the version of the request, and the addresses of the client.

Pure; does not change the object. Raises an APIError where nothing can be made of it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A subresource that is made from the object when it is read, and is never written.

    It is of a kind of its own, with a right of its own: who may read it need not be allowed to read the object.
    """

    kind: str
    version: str
    group: str = ""
    schema: ObjectSchema
    """The whole kind, for the OpenAPI document."""
    render: Render
    verbs: Sequence[str] = VIEW_VERBS


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A kind and its verbs. ``versions`` are those that are served, the preferred one first."""

    group: str
    kind: str
    plural: str
    singular: str
    versions: Sequence[Version]
    verbs: Sequence[str] = MAIN_VERBS
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    names: NameRule = SUBDOMAINS
    namespaced: bool = False
    """Whether its objects belong to namespaces; else they are root-scoped."""
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
        """Whether objects of it are stored; a review is not."""
        return False

    @property
    def subresources(self) -> Mapping[str, Subresource]:
        """The subresources that are parts of the object, by name; a review has none."""
        return {}

    @property
    def views(self) -> Mapping[str, View]:
        """The subresources that are made from the object, by name; a review has none."""
        return {}

    def version(self, name: str, *, group: str | None = None) -> Version | None:
        """The version of that name, in the group of the resource or in another one."""
        wanted = self.group if group is None else group
        return next((each for each in self.versions if (each.name, self.group_of(each)) == (name, wanted)), None)

    def group_of(self, version: Version) -> str:
        """The group in which a version is served."""
        return self.group if version.group is None else version.group


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Definition):
    """A kind whose objects are stored."""

    storage_version: str
    unserved: Sequence[Version] = ()
    """Further versions, in which objects may be stored and fields may be managed."""
    strategy: Strategy
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    admission: Admission | None = None
    """What a write needs besides being authorized and valid. It may set fields that depend on the user."""
    check_delete: CheckDelete | None = None
    """Says why an object must not be deleted; None: every object may be. It applies to every delete, of whichever user
    and of the server's own controllers, but not to an object that is being deleted already."""
    deletion: DeletionStrategy | None = None
    """The kind's own rules of deletion; None: finalizers alone hold a deleted object."""
    selectable_fields: Mapping[str, SelectField] = field(default_factory=dict)
    """The fields of field selectors, besides ``metadata.name`` and ``metadata.namespace``."""
    unique_fields: Mapping[str, SelectField] = field(default_factory=dict)
    """The fields whose values no two objects share, by their paths: strings, outside of the metadata.

    An object without a value shares it with none. ``unique_fields`` has the rules.
    """
    retention: float | None = None
    """Seconds after its last write at which the server removes an object; None: never."""
    validates_metadata: bool = False
    """Whether the strategies of a native kind validate the metadata, too, besides the rules of all kinds.

    False: ``object_rules`` does it as kube-apiserver's strategies of most kinds do.
    """
    default_roles: Sequence[str] = ("admin", "edit", "view")
    """The default roles with rights on it: ``view`` reads, ``edit`` writes, ``admin`` writes the status too."""
    grouped_by: Grouping | None = None
    """The resource whose objects are groups of its objects: rights can be given on the members of a group."""
    read_your_writes: bool = False
    """Whether a write is answered only after its event has arrived, for objects that the server itself acts on."""

    @property
    def is_stored(self) -> bool:
        return True

    @property
    def known_versions(self) -> Sequence[Version]:
        """All versions, served or not."""
        return (*self.versions, *self.unserved)

    @property
    def stored_as(self) -> Version:
        """The storage version itself, which is in the group of the resource."""
        return next(each for each in self.known_versions if each.name == self.storage_version and each.group is None)

    def strategy_of(self, version: Version) -> Strategy:
        """The rules of writes in a version."""
        return version.strategy or self.strategy
