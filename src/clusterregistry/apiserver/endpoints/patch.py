"""PATCH of an object or of its status: JSON patch, merge patch, strategic merge patch, and server-side apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterregistry.apimachinery.codecs import Decoded, DecodeError, json_codec
from clusterregistry.apimachinery.meta import errors, field_errors
from clusterregistry.apimachinery.meta.json_types import ShapeError, go_text
from clusterregistry.apimachinery.patch import (
    InvalidPatch,
    PatchFailed,
    PatchTooLarge,
    json_patch,
    merge_patch,
    strategic_merge,
)
from clusterregistry.apiserver.endpoints import encoding, group_access, negotiation
from clusterregistry.apiserver.endpoints.apply import apply_patcher
from clusterregistry.apiserver.endpoints.decoder import check_kind, decode_json, tidy, unknown_fields, work_size
from clusterregistry.apiserver.endpoints.options import WriteOptions, manager_name, patch_options
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.endpoints.update import check_name
from clusterregistry.apiserver.http.response import Answer
from clusterregistry.apiserver.registry.store import Change, UpdateRequest, Written
from clusterregistry.apiserver.registry.worker_pool import LARGE, LARGE_REQUESTS

Object = dict[str, Any]
Apply = Callable[[Object, Any], Any]


async def patch(scope: RequestScope, request: Request) -> Answer:
    """Changes an object by a patch of it. Raises 400, 404, 409, 413, 415, 422."""
    representation = negotiation.negotiate(request, native=scope.resource.native)
    media_type = negotiation.patch_type(request.header("content-type"), native=scope.resource.native)
    body = request.take_buffered_body() or await request.body()
    size = work_size(body, media_type)
    if size > LARGE:
        await LARGE_REQUESTS.acquire(request.user.name)
    try:
        written = await _patched(scope, request, body, media_type=media_type, size=size)
        status = 201 if written.created else 200
        return encoding.object_response(scope, written.kv, representation, status=status)
    finally:
        if size > LARGE:
            LARGE_REQUESTS.release(request.user.name)


async def _patched(scope: RequestScope, request: Request, body: bytes, *, media_type: str, size: int) -> Written:
    is_apply = media_type == negotiation.APPLY_PATCH
    options = patch_options(request.query, apply=is_apply)
    change: Change
    if is_apply:
        change = await apply_patcher(scope, request, body, options=options)
    else:
        decoded = await _decoded(body, strict=options.field_validation != "Ignore")
        change = _Patch(scope, request, media_type=media_type, decoded=decoded, options=options)
    admit, before_create = group_access.for_write(scope, request)
    return await scope.store.update(
        request.info.key,
        UpdateRequest(
            change=change,
            strategy=scope.strategy_for(request.info.subresource),
            dry_run=options.dry_run,
            warn=request.warnings.add,
            discard_warnings=request.warnings.checkpoint(),
            allow_create=is_apply and not request.info.subresource,
            before_create=before_create,
            check_stored=group_access.check_for(request),
            admit=admit,
            size=size,
        ),
    )


async def _decoded(body: bytes, *, strict: bool) -> Decoded:
    try:
        return await decode_json(body, strict=strict)
    except DecodeError as error:
        raise errors.bad_request(f"error decoding patch: {error}") from None


class _Patch:
    """A patch, decoded once, that can be applied to one object after another."""

    def __init__(
        self,
        scope: RequestScope,
        request: Request,
        *,
        media_type: str,
        decoded: Decoded,
        options: WriteOptions,
    ) -> None:
        self._scope = scope
        self._request = request
        self._options = options
        self._media_type = media_type
        self._document = decoded.value
        self._mistakes = decoded.strict_errors
        if media_type == negotiation.JSON_PATCH:
            duplicates = [f"json patch {text}" for text in decoded.strict_errors]
            self._mistakes = [*duplicates, *json_patch.unknown_fields(decoded.value)]
        self._is_strict = options.field_validation == "Strict"
        self._apply = self._applied_by(media_type)

    def __call__(self, old: Object | None) -> Object:
        scope, info = self._scope, self._request.info
        if old is None:
            raise scope.store.not_found(info.key)
        current = scope.version.from_storage(old)
        obj = self._patched(current)
        if not isinstance(obj.get("kind"), str) or not obj["kind"]:
            shown = json_codec.encode(obj)
            raise _invalid(shown, f"Object 'Kind' is missing in '{shown.decode()}'")
        # For errors, which show the object before it is pruned. Without strict validation there are none after that.
        shown = self._shown(obj) if scope.version.decode or self._is_strict else b""
        try:
            unknown = tidy(scope, obj, warn=self._request.warnings.add, known=current)
        except ShapeError as error:
            raise _invalid(shown or self._shown(obj), str(error)) from None
        self._report([*self._mistakes, *unknown_fields(unknown)], shown)
        check_name(scope, obj, info)
        self._check_type(obj)
        field_manager = scope.field_manager_for(self._request.info.subresource)
        field_manager.record_update(current, obj, manager=manager_name(self._request, self._options))
        return scope.version.to_storage(obj)

    def _shown(self, obj: Object) -> bytes:
        """The object as errors show it; for a strategic merge of a native kind, as in kube-apiserver, the patch."""
        if self._scope.resource.native and self._media_type == negotiation.STRATEGIC_MERGE_PATCH:
            return go_text(self._document).encode("utf-8", "replace")
        return json_codec.encode(obj)

    def _applied_by(self, media_type: str) -> Apply:
        if media_type == negotiation.JSON_PATCH:
            return json_patch.apply
        if media_type == negotiation.MERGE_PATCH:
            return merge_patch.apply
        schema = self._scope.version.schema
        return lambda obj, document: strategic_merge.apply(obj, document, schema=schema)

    def _patched(self, current: Object) -> Object:
        try:
            obj = self._apply(current, self._document)
        except InvalidPatch as error:
            raise errors.bad_request(str(error)) from None
        except PatchTooLarge as error:
            raise errors.request_entity_too_large(str(error)) from None
        except PatchFailed:
            raise errors.unprocessable() from None
        if not isinstance(obj, dict):
            raise errors.unprocessable()
        return {**obj}

    def _check_type(self, obj: Object) -> None:
        """A patch may change neither kind nor version. Raises 422."""
        scope = self._scope
        check_kind(scope, obj)
        if obj.get("apiVersion") != scope.group_version:
            wrong = field_errors.invalid("apiVersion", obj.get("apiVersion", ""), f"must be {scope.group_version}")
            raise errors.invalid(
                group=scope.group, kind=scope.resource.kind, name=self._request.info.name, errors=[wrong]
            )

    def _report(self, mistakes: list[str], shown: bytes) -> None:
        """Refuses, warns of or ignores duplicate and unknown fields, by fieldValidation."""
        if mistakes and self._is_strict:
            raise _invalid(shown, f"strict decoding error: {', '.join(mistakes)}")
        if self._options.field_validation == "Warn":
            for mistake in mistakes:
                self._request.warnings.add(mistake)


def _invalid(patched: bytes, detail: str) -> errors.APIError:
    """As in kube-apiserver, which shows the patched object under the name of the patch."""
    wrong = field_errors.invalid("patch", patched.decode("utf-8", "replace"), detail)
    return errors.invalid(group="", kind="", name="", errors=[wrong])
