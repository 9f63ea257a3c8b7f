"""A compiled schema: validates and prunes every object that is written.

The behaviour is that of kube-apiserver with the structural schema of a custom resource. Nothing here raises for any
JSON value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.fast_path import compile_recognition, compile_shape_recognition
from clusterregistry.apimachinery.schema.prune import compile_pruner, compile_renamer
from clusterregistry.apimachinery.schema.validate import Problems, compile_check, compile_list_check, problems_as_errors

Object = dict[str, Any]

_COMMON = frozenset(("apiVersion", "kind", "metadata"))


class Structural:
    """One version of one kind. Takes whole objects; ``apiVersion``, ``kind`` and ``metadata`` stay unchanged."""

    def __init__(self, schema: schemas.Object) -> None:
        self._parts = tuple(name for name in schema.fields if name not in _COMMON)
        parts = {name: schema.fields[name] for name in self._parts}
        self._prune = compile_pruner(schemas.Object(fields=parts), untouched=_COMMON)
        self._rename = compile_renamer(schema)
        self._has_shape = compile_shape_recognition(
            schemas.Object(fields=parts, old_spellings=schema.old_spellings), untouched=_COMMON
        )
        self._recognise = {
            name: compile_recognition(part) for name, part in parts.items() if isinstance(part, schemas.Object)
        }
        self._checks = {name: compile_check(part) for name, part in parts.items()}
        self._list_checks = {name: check for name, part in parts.items() if (check := compile_list_check(part))}

    def is_tidy(self, obj: Object) -> bool:
        """Whether ``rename_old_spellings`` and ``prune`` certainly have nothing to do. A fast check."""
        return None not in obj.values() and self._has_shape(obj)

    def rename_old_spellings(self, obj: Object) -> list[str]:
        """Renames former properties, in place, and returns a warning for each. Call ``prune`` after it."""
        warnings = self._rename(obj) if self._rename else None
        return [text.removeprefix(".") for text in warnings] if warnings else []

    def prune(self, obj: Object) -> list[str]:
        """Removes unknown fields, in place, and returns their sorted paths.

        Also drops null where the schema has a type, and converts a float such as 1.0 to an integer.
        """
        unknown = self._prune(obj)
        return sorted(path.removeprefix(".") for path in unknown) if unknown else []

    def validate(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[FieldError]:
        """All violations of the schema. A top-level part that equals that of ``old`` is known to be valid."""
        errors: list[FieldError] = []
        duplicates: list[FieldError] = []
        for part in self._changed(obj, old):
            if problems := self._problems(part, obj[part]):
                errors += problems_as_errors(problems, part=part, named_from=part)
            duplicates += self._duplicates(part, obj[part])
        return errors + duplicates

    def validate_part(self, part: str, value: Any, old: Any = None) -> list[FieldError]:
        """All violations in one top-level part, as a subresource writes it.

        Messages name fields from that part on: kube-apiserver checks ``/status`` against the status schema.
        """
        if value is None or value == old:
            return []
        problems = self._problems(part, value)
        errors = problems_as_errors(problems, part=part, named_from="") if problems else []
        return errors + self._duplicates(part, value)

    def _problems(self, part: str, value: Any) -> Problems:
        recognise = self._recognise.get(part)
        return None if recognise and recognise(value) else self._checks[part](value)

    def _changed(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[str]:
        if old is None:
            return [part for part in self._parts if part in obj]
        return [part for part in self._parts if part in obj and (part not in old or obj[part] != old[part])]

    def _duplicates(self, part: str, value: Any) -> list[FieldError]:
        check = self._list_checks.get(part)
        problems = check(value) if check else None
        return problems_as_errors(problems, part=part, named_from=part) if problems else []
