"""What an OpenAPI document is about: its paths and the named schemas that they need.

Version 2 has one document for the whole server, version 3 one for each group version and for each of the
documents above them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterregistry.apiserver.discovery import definitions, operations
from clusterregistry.apiserver.discovery.definitions import META_PREFIX, VERSION_INFO, NamedSchemas, meta_types
from clusterregistry.apiserver.discovery.groups import group_versions, served_in
from clusterregistry.apiserver.discovery.operations import PATCH_TYPES, Operation, Path, ResourceOperations
from clusterregistry.apiserver.registry.resource import Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The paths of one document and all schemas they refer to, directly or not."""

    paths: Sequence[Path]
    schemas: NamedSchemas


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """All that is served, and how."""

    resources: Sequence[Definition]
    enable_watch: bool = True
    patch_types: Sequence[str] = PATCH_TYPES

    def all_in_one(self) -> Contents:
        return self._contents([path for paths in self._paths().values() for path in paths])

    def by_document(self) -> dict[str, Contents]:
        """Keyed by path without the leading slash, as the index of version 3 names them."""
        return {name: self._contents(paths) for name, paths in self._paths().items()}

    def _contents(self, paths: Sequence[Path]) -> Contents:
        roots = [name for path in paths for operation in path.operations for name in _needed(operation)]
        return Contents(paths=paths, schemas=definitions.reachable(roots, self._schemas()))

    def _paths(self) -> Mapping[str, list[Path]]:
        found = {"api": [_about("api", "core", "APIVersions")], "apis": [_about("apis", "apis", "APIGroupList")]}
        for group, versions in group_versions(self.resources).items():
            found[f"apis/{group}"] = [_about(f"apis/{group}", operations.tag(group), "APIGroup")]
            for version in versions:
                found[f"apis/{group}/{version}"] = self._group_version(group, version)
        found["version"] = [
            operations.document_path("/version/", schema=VERSION_INFO, operation_id="getVersion", tag="version")
        ]
        return found

    def _group_version(self, group: str, version: str) -> list[Path]:
        paths = [_about(f"apis/{group}/{version}", operations.tag(group, version), "APIResourceList")]
        for resource, definition in served_in(self.resources, group=group, version=version):
            its_operations = ResourceOperations(
                resource=resource, version=definition, enable_watch=self.enable_watch, patch_types=self.patch_types
            )
            paths.extend(its_operations.paths())
        return paths

    def _schemas(self) -> NamedSchemas:
        pairs = [(group, version) for group, versions in group_versions(self.resources).items() for version in versions]
        schemas = meta_types(pairs)
        for resource in self.resources:
            for version in resource.versions:
                schemas |= definitions.of_resource(resource, version)
        return schemas


def _about(path: str, tag: str, schema: str) -> Path:
    operation_id = f"get{tag[:1].upper()}{tag[1:].replace('_', '')}{schema}"
    return operations.document_path(f"/{path}/", schema=META_PREFIX + schema, operation_id=operation_id, tag=tag)


def _needed(operation: Operation) -> Iterator[str]:
    yield operations.STATUS
    for names in operation.answers.values():
        yield from names
    if operation.body is not None:
        yield operation.body.schema
