"""PATCH with an applied configuration: server-side apply."""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.codecs import Decoded, DecodeError
from clusterregistry.apimachinery.fieldmanager.errors import ConflictsError, InvalidConfigurationError
from clusterregistry.apimachinery.meta import errors, object_meta
from clusterregistry.apimachinery.meta.json_types import ShapeError, json_type
from clusterregistry.apimachinery.meta.object_meta import MetadataError
from clusterregistry.apiserver.endpoints.decoder import decode_yaml
from clusterregistry.apiserver.endpoints.options import WriteOptions
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.endpoints.update import check_name
from clusterregistry.apiserver.registry.store import check_resource_version

Object = dict[str, Any]

_NOT_YAML = "error converting YAML to JSON: "


async def apply_patcher(scope: RequestScope, request: Request, body: bytes, *, options: WriteOptions) -> ApplyPatcher:
    """Decodes the configuration in a body. Raises 400."""
    try:
        decoded = await decode_yaml(body, strict=options.field_validation != "Ignore")
    except DecodeError as error:
        raise errors.bad_request(f"error decoding YAML: {_NOT_YAML}{error}") from None
    return ApplyPatcher(scope, request, decoded=decoded, options=options)


class ApplyPatcher:
    """A configuration, decoded once, that can be applied to one object after another."""

    def __init__(self, scope: RequestScope, request: Request, *, decoded: Decoded, options: WriteOptions) -> None:
        self._scope = scope
        self._request = request
        self._options = options
        self._strict_errors = decoded.strict_errors
        self._warnings = decoded.warnings
        self._configuration = _configuration(decoded.value)
        for text in scope.structural.rename_old_spellings(self._configuration):
            request.warnings.add(text)

    def __call__(self, old: Object | None) -> Object:
        scope, info = self._scope, self._request.info
        obj = self._applied(old and scope.version.from_storage(old))
        self._report()
        if old is None:
            self._check_new(obj)
        obj["metadata"] = _normalised(obj["metadata"], old and old["metadata"])
        self._decode(obj)
        check_name(scope, obj, info)
        return scope.version.to_storage(obj)

    def _applied(self, live: Object | None) -> Object:
        field_manager = self._scope.field_manager_for(self._request.info.subresource)
        try:
            return field_manager.apply(
                live, self._configuration, manager=self._options.field_manager, force=self._options.force
            )
        except InvalidConfigurationError as error:
            raise errors.bad_request(str(error)) from None
        except ConflictsError as error:
            raise _conflict(error) from None

    def _decode(self, obj: Object) -> None:
        """Converts an object of a native kind to its struct, which is narrower than the schema of apply. Raises 400."""
        scope = self._scope
        if scope.version.decode is None:
            return
        try:
            scope.version.decode(obj)
        except ShapeError as error:
            metadata, kind = obj["metadata"], f"{_group_version(scope)}, Kind={scope.resource.kind}"
            what = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {kind}"
            reason = f"unable to convert unstructured object to {kind}: {error}"
            raise errors.bad_request(f"failed to convert new object ({what}) to proper version: {reason}") from None

    def _report(self) -> None:
        """Refuses, warns of or ignores duplicate keys, by fieldValidation."""
        if self._strict_errors and self._options.field_validation == "Strict":
            raise errors.bad_request(f"error strict decoding YAML: {_NOT_YAML}{', '.join(self._strict_errors)}")
        if self._options.field_validation == "Warn":
            for text in self._warnings:
                self._request.warnings.add(text)

    def _check_new(self, obj: Object) -> None:
        """Checks that a new object names neither a uid nor a resource version. Raises 400 and 409."""
        metadata = obj["metadata"]
        check_resource_version(metadata.pop("resourceVersion", None) or "0")
        if uid := metadata.get("uid"):
            resource = self._scope.resource
            detail = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise errors.conflict(
                group=self._scope.group, resource=resource.plural, name=self._request.info.name, detail=detail
            )


def _group_version(scope: RequestScope) -> str:
    """``GROUP/VERSION``, as Go formats it: ``/v1`` for the core group."""
    return f"{scope.group}/{scope.version.name}"


def _configuration(value: Any) -> Object:
    """Raises 400."""
    if value is None:
        value = {}
    if not isinstance(value, dict):
        found = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
        raise errors.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {found}")
    return value


def _normalised(metadata: Object, known: Object | None) -> Object:
    managed = metadata.pop("managedFields", None)
    try:
        normal = object_meta.decode(metadata, known).metadata
    except MetadataError as error:
        raise errors.bad_request(str(error)) from None
    return {**normal, "managedFields": managed} if managed else normal


def _conflict(error: ConflictsError) -> errors.APIError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {each.manager}", "field": each.field}
        for each in error.conflicts
    ]
    return errors.failure(409, "Conflict", str(error), {"causes": causes})
