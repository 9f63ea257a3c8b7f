"""POST of a review, which is answered at once and not stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from clusterregistry.apimachinery.fieldmanager.field_manager import FieldManager, View
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.object_meta_schema import whole_object
from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver.endpoints import encoding, negotiation
from clusterregistry.apiserver.endpoints.decoder import decode_object, work_size
from clusterregistry.apiserver.endpoints.negotiation import METADATA, NATIVE, Representation
from clusterregistry.apiserver.endpoints.options import manager_name, write_options
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.endpoints.request_scope import KindScope, group_version
from clusterregistry.apiserver.http.response import Answer, Response
from clusterregistry.apiserver.registry.resource import Definition, Version, same
from clusterregistry.apiserver.registry.worker_pool import LARGE, LARGE_REQUESTS, run_in_worker
from clusterregistry.apiserver.reviews.interface import Review

Object = dict[str, Any]

_OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"
_SERVER_FIELDS = ("selfLink", "uid", "resourceVersion", "generation", "creationTimestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewScope(KindScope):
    """One kind of review in one version. Its managed fields are part of the response."""

    review: Review
    field_manager: FieldManager


def review_scope(review: Review, version: Version, *, now: Callable[[], str]) -> ReviewScope:
    definition = review.definition
    return ReviewScope(
        resource=definition,
        version=version,
        structural=Structural(version.schema),
        review=review,
        field_manager=_field_manager(definition, version, now=now),
    )


def _field_manager(definition: Definition, version: Version, *, now: Callable[[], str]) -> FieldManager:
    api_version = group_version(definition, version)
    return FieldManager(
        {api_version: View(schema=whole_object(version.schema), to_storage=same, from_storage=same)},
        api_version=api_version,
        kind=definition.kind,
        subresource="",
        reset_fields=frozenset(),
        now=now,
        blank={"spec": {}},
    )


async def review(scope: ReviewScope, request: Request) -> Answer:
    """Answers a review; 201 with its spec and its status."""
    representation = negotiation.negotiate(request, native=True)
    if representation.kind not in ("", METADATA):
        raise errors.not_acceptable(NATIVE)
    media_type = negotiation.body_type(request.header("content-type"), native=True)
    body = request.take_buffered_body() or await request.body()
    size = work_size(body, media_type)
    if size > LARGE:
        await LARGE_REQUESTS.acquire(request.user.name)
    try:
        answer = await _answered(scope, request, body, media_type=media_type, size=size)
        return await run_in_worker(partial(_response, answer, representation), size=size)
    finally:
        if size > LARGE:
            LARGE_REQUESTS.release(request.user.name)


async def _answered(scope: ReviewScope, request: Request, body: bytes, *, media_type: str, size: int) -> Object:
    options = write_options(request.query, "CreateOptions")
    validation, warn = options.field_validation, request.warnings.add
    question = await decode_object(scope, body, media_type, size=size, field_validation=validation, warn=warn)
    _prepare(question, namespace=request.info.path_namespace)
    await run_in_worker(partial(_check, scope, question, manager=manager_name(request, options)), size=size)
    return await scope.review.answer(question, request.user)


def _check(scope: ReviewScope, question: Object, *, manager: str) -> None:
    scope.field_manager.record_update(None, question, manager=manager)
    scope.review.validate(question)


def _prepare(question: Object, *, namespace: str) -> None:
    """Drops the fields that only the server sets, the status above all, and sets the namespace. Raises 400."""
    question.pop("status", None)
    metadata = question["metadata"]
    given = metadata.pop("namespace", None) or namespace
    if namespace and given != namespace:
        raise errors.bad_request(_OTHER_NAMESPACE)
    for name in _SERVER_FIELDS:
        metadata.pop(name, None)
    if namespace:
        metadata["namespace"] = namespace


def _response(answer: Object, representation: Representation) -> Response:
    if representation.kind == METADATA:
        version = f"meta.k8s.io/{representation.version}"
        answer = {"kind": METADATA, "apiVersion": version, "metadata": answer["metadata"]}
    return encoding.ordered_response(201, answer, representation)
