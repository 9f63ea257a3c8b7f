"""The fields of a resource that field selectors can name: the metadata's, and those that the resource declares."""

from __future__ import annotations

from collections.abc import Mapping

from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apimachinery.meta.field_selectors import (
    NAME,
    NAMESPACE,
    FieldSelector,
    ReadField,
    parse_field_selector,
)
from clusterregistry.apimachinery.meta.selectors import SelectorError
from clusterregistry.apiserver.registry.resource import Resource, SelectField, Version
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import decoded_to_read, name_of, namespace_of


class SelectableFields:
    """The fields of a resource as one of its versions names them."""

    def __init__(
        self,
        readers: Mapping[str, SelectField] | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        namespaced: bool = False,
        native: bool = False,
    ) -> None:
        """``labels`` are the names of the fields in the version, each with its name among the readers."""
        self._readers, self._is_namespaced = readers or {}, namespaced
        self._names: Mapping[str, str] = {name: name for name in self._readers} if labels is None else labels
        # As in kube-apiserver: a native kind without fields of its own takes both fields of the metadata.
        self._has_defaults = native and not self._readers
        metadata = (NAME, NAMESPACE) if namespaced or self._has_defaults else (NAME,)
        self._supported = frozenset((*metadata, *self._names))

    @classmethod
    def of(cls, resource: Resource, version: Version) -> SelectableFields:
        return cls(
            resource.selectable_fields,
            labels=version.field_labels,
            namespaced=resource.namespaced,
            native=resource.native,
        )

    def parse(self, text: str) -> FieldSelector:
        """The selector that a client wrote, with the names of the resource. Raises SelectorError."""
        if not self._has_defaults:
            return parse_field_selector(text, self._supported).renamed(self._names)
        selector = parse_field_selector(text, None)
        for term in selector.terms:
            if term.field not in self._supported:
                known = f"{quoted(NAME)}, {quoted(NAMESPACE)}"
                raise SelectorError(f"{quoted(term.field)} is not a known field selector: only {known}")
        return selector

    def reader(self, kv: KeyValue) -> ReadField:
        """Reads the fields of one object, which is decoded when a field besides its metadata is read."""
        obj = None

        def read(field: str) -> str:
            nonlocal obj
            if field == NAME:
                return name_of(kv)
            if field == NAMESPACE:
                return namespace_of(kv) if self._is_namespaced else ""
            if obj is None:
                obj = decoded_to_read(kv)
            return self._readers[field](obj)

        return read


NAME_ALONE = SelectableFields()
"""The fields of a root-scoped resource that declares none."""
