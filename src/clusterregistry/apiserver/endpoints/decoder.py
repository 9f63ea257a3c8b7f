"""Decodes the bytes of a body to an object of the resource.

Unknown fields are dropped and, by ``fieldValidation``, warned of or refused. Validation checks the types and values of
the others; only a body that is no object of the kind at all is a 400.
"""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

from clusterregistry.apimachinery.codecs import MAX_STRICT_ERRORS, Decoded, DecodeError, cut, json_codec, yaml_codec
from clusterregistry.apimachinery.meta import errors, field_errors, object_meta
from clusterregistry.apimachinery.meta.json_types import ShapeError, json_type
from clusterregistry.apimachinery.meta.object_meta import MetadataError
from clusterregistry.apiserver.endpoints.negotiation import APPLY_PATCH, PROTOBUF, YAML
from clusterregistry.apiserver.endpoints.request_scope import KindScope
from clusterregistry.apiserver.registry.worker_pool import LARGE, run_in_worker

Object = dict[str, Any]
Warn = Callable[[str], None]
Type = tuple[str, str]
"""apiVersion and kind."""

_ABSENT: Any = object()
_SHOWN_LIMIT = 30
"""Bytes of a body that is no object, in a message."""
_UNDECODED_BYTE = re.compile("[\udc80-\udcff]")
_WITH_ALIASES = frozenset((YAML, APPLY_PATCH))
_NO_KIND = "couldn't get version/kind; json parse error: "
_GO_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_PROTOBUF_CODEC = "clusterregistry.apimachinery.codecs.protobuf_codec"
_modules: dict[str, Any] = {}


async def decode_object(  # noqa: PLR0913 - all but three by keyword
    scope: KindScope, body: bytes, media_type: str, *, size: int, field_validation: str, warn: Warn
) -> Object:
    """Decodes the body of a create or update: an object of any kind in the scope's version. Raises 400.

    ``size`` is the ``work_size`` of the body.
    """
    if media_type == PROTOBUF:
        await _loaded(_PROTOBUF_CODEC)
    if size <= LARGE:
        return _object(scope, body, media_type=media_type, field_validation=field_validation, warn=warn)
    work = partial(_object, scope, body, media_type=media_type, field_validation=field_validation, warn=warn)
    return await run_in_worker(work, size=size)


def _object(scope: KindScope, body: bytes, *, media_type: str, field_validation: str, warn: Warn) -> Object:
    default_type = scope.type if scope.resource.native else None
    try:
        decoded = _decoded(body, media_type, default_type=default_type, strict=field_validation != "Ignore")
        obj = _typed(decoded.value, body, default_type=default_type)
    except errors.APIError as error:
        message = f"the object provided is unrecognized (must be of type {scope.resource.kind}): {error}"
        raise errors.bad_request(f"{message} ({_summary(body)})") from None
    if scope.resource.native:
        _check_native_kind(scope, obj)
    _check_version(scope, obj)
    paths = _tidied(scope, obj, warn=warn)
    # The fields of another kind are not known; it is refused later for its kind alone.
    unknown = unknown_fields(paths) if obj["kind"] == scope.resource.kind else []
    if field_validation == "Strict" and (decoded.strict_errors or unknown):
        mistakes = ", ".join([*decoded.strict_errors, *unknown])
        raise errors.bad_request(_cannot_be_handled(scope, f"strict decoding error: {mistakes}"))
    if field_validation == "Warn":
        for mistake in [*decoded.warnings, *unknown]:
            warn(mistake)
    return obj


def work_size(body: bytes, media_type: str) -> int:
    """The size of a body by the work that it makes: with aliases a short YAML is as much work as a large body."""
    if media_type in _WITH_ALIASES and b"&" in body and b"*" in body:
        return max(len(body), LARGE + 1)
    return len(body)


def unknown_fields(paths: Iterable[str]) -> list[str]:
    """The strict errors for unknown fields, at most as many as strict decoding reports."""
    return [f'unknown field "{cut(path)}"' for path in islice(paths, MAX_STRICT_ERRORS)]


async def decode_body(body: bytes, media_type: str, *, default_type: Type | None = None) -> Decoded:
    """Decodes a body without strict errors. Raises 400.

    ``default_type`` is the type of a native kind's body that names none.
    """
    if media_type == PROTOBUF:
        await _loaded(_PROTOBUF_CODEC)
    work = partial(_decoded, body, media_type, default_type=default_type, strict=False)
    return await run_in_worker(work, size=work_size(body, media_type))


def _decoded(body: bytes, media_type: str, *, default_type: Type | None, strict: bool) -> Decoded:
    """Raises 400."""
    if media_type == PROTOBUF:
        return _decoded_protobuf(body, default_type or ("", ""))
    decode = yaml_codec.decode if media_type == YAML else json_codec.decode
    try:
        return decode(body, strict=strict)
    except DecodeError as error:
        raise errors.bad_request(str(error) if media_type == YAML else f"{_NO_KIND}{error}") from None


def _decoded_protobuf(body: bytes, default_type: Type) -> Decoded:
    codec = _modules[_PROTOBUF_CODEC]
    try:
        decoded: Decoded = codec.decode(body, default_type=default_type)
    except DecodeError as error:
        raise errors.bad_request(str(error)) from None
    return decoded


async def _loaded(module: str) -> Any:
    """Imports a module that is dear to import and rarely needed, in a thread: other requests do not wait for it."""
    if module not in _modules:  # not sys.modules, which has it while it is still being imported
        _modules[module] = await asyncio.to_thread(importlib.import_module, module)
    return _modules[module]


async def decode_json(body: bytes, *, strict: bool) -> Decoded:
    """Decodes a body in JSON. Raises DecodeError."""
    return await run_in_worker(partial(json_codec.decode, body, strict=strict), size=len(body))


async def decode_yaml(body: bytes, *, strict: bool) -> Decoded:
    """Decodes a body in YAML or JSON. Raises DecodeError."""
    return await run_in_worker(partial(yaml_codec.decode, body, strict=strict), size=work_size(body, APPLY_PATCH))


def _summary(body: bytes) -> str:
    """The beginning of a body that is no object, as kube-apiserver shows it."""
    if not body:
        return "<empty>"
    shown = body[:_SHOWN_LIMIT]
    # As in Go, one replacement for each invalid byte: the limit may cut a character.
    text = _UNDECODED_BYTE.sub("\ufffd", shown.decode(errors="surrogateescape")) if body[:1] == b"{" else shown.hex()
    return text if len(body) <= _SHOWN_LIMIT else text + " ..."


def no_object(value: Any) -> str:
    """The message of Go's decoder for a body that is no object."""
    found = json_type(value)
    return f"{_NO_KIND}json: cannot unmarshal {found} into Go value of type {_GO_TYPE_META}"


def _typed(value: Any, body: bytes, *, default_type: Type | None) -> Object:
    """The value as an object that names its kind; by default it is of ``default_type``. Raises 400."""
    if value is not None and not isinstance(value, dict):
        raise errors.bad_request(no_object(value))
    obj: Object = value or {}
    for name in ("apiVersion", "kind"):
        given = obj.get(name)
        if given is not None and not isinstance(given, str):
            found = f"json: cannot unmarshal {json_type(given)} into Go struct field .{name} of type string"
            raise errors.bad_request(_NO_KIND + found)
    if (obj.get("apiVersion") or "").count("/") > 1:
        raise errors.bad_request(f"unexpected GroupVersion string: {obj['apiVersion']}")
    if default_type is not None:
        for name, default in zip(("apiVersion", "kind"), default_type, strict=True):
            obj[name] = obj.get(name) or default
    if not obj.get("kind"):
        shown = body.decode("utf-8", "replace") if len(body) < LARGE else _summary(body)
        raise errors.bad_request(f"Object 'Kind' is missing in '{shown}'")
    return obj


def _check_native_kind(scope: KindScope, obj: Object) -> None:
    kind, api_version = obj["kind"], obj["apiVersion"]
    if kind != scope.resource.kind:
        version = api_version.rpartition("/")[2]
        refused = f'{kind} in version "{version}" cannot be handled as a {scope.resource.kind}'
        raise errors.bad_request(f'{refused}: the body is of kind "{kind}" of "{api_version}"')


def _check_version(scope: KindScope, obj: Object) -> None:
    given = obj.get("apiVersion") or ""
    if given != scope.group_version:
        raise errors.bad_request(
            f"the API version in the data ({given}) does not match the expected API version ({scope.group_version})"
        )


def check_kind(scope: KindScope, obj: Object) -> None:
    """Refuses an object of another kind, with an error of the kind that was sent. Raises 422."""
    if obj["kind"] != scope.resource.kind:
        raise wrong_kind(scope, obj)


def wrong_kind(scope: KindScope, obj: Object) -> errors.APIError:
    kind = obj["kind"]
    wrong = field_errors.invalid("kind", kind, f"must be {scope.resource.kind}")
    return errors.invalid(group=scope.group, kind=kind, name=obj["metadata"].get("name", ""), errors=[wrong])


def _tidied(scope: KindScope, obj: Object, *, warn: Warn) -> list[str]:
    try:
        return tidy(scope, obj, warn=warn)
    except ShapeError as error:
        raise errors.bad_request(_cannot_be_handled(scope, str(error))) from None


def tidy(scope: KindScope, obj: Object, *, warn: Warn, known: Object | None = None) -> list[str]:
    """Normalises metadata and drops what the schema does not know. Returns the paths of the unknown fields.

    ``known`` is the stored object that ``obj`` is a patched copy of: parts that are still its very own are tidy.
    Raises ShapeError for metadata of a wrong shape, and for all that does not fit a native kind.
    """
    before = known or {}
    try:
        metadata, unknown = object_meta.decode(obj.get("metadata"), before.get("metadata"))
    except MetadataError as error:
        raise ShapeError(error.of_native(scope.resource.kind) if scope.resource.native else str(error)) from None
    for text in object_meta.deduplicate_owner_references(metadata, patched=known is not None):
        warn(text)
    obj["metadata"] = metadata
    if scope.version.decode:
        return unknown + scope.version.decode(obj)
    changed = {name: part for name, part in obj.items() if before.get(name, _ABSENT) is not part} if known else obj
    if not scope.structural.is_tidy(changed):
        unknown += _pruned(scope, obj, before, warn=warn)
    return unknown


def _pruned(scope: KindScope, obj: Object, before: Object, *, warn: Warn) -> list[str]:
    """Drops, in place, what the schema does not know from all that is not shared with ``before``; returns its paths."""
    untouched = {name: obj.pop(name) for name, part in before.items() if obj.get(name, _ABSENT) is part}
    for text in scope.structural.rename_old_spellings(obj):
        warn(text)
    unknown = scope.structural.prune(obj)
    obj.update(untouched)
    return unknown


def _cannot_be_handled(scope: KindScope, detail: str) -> str:
    kind = scope.resource.kind
    return f'{kind} in version "{scope.version.name}" cannot be handled as a {kind}: {detail}'
