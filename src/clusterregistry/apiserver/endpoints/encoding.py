"""Encodes objects, lists, watch events and Statuses in the negotiated representation.

The plain representation is the stored bytes. Most others are made from decoded objects.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import orjson

from clusterregistry.apimachinery.codecs import json_codec, yaml_codec
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError, Status
from clusterregistry.apiserver.endpoints import list_encoding, negotiation, table
from clusterregistry.apiserver.endpoints.list_encoding import (
    Form,
    PartialObjects,
    lazy_list,
    listed_objects,
    partial_head,
    single,
)
from clusterregistry.apiserver.endpoints.negotiation import (
    JSON,
    METADATA,
    METADATA_LIST,
    PROTOBUF,
    TABLE,
    YAML,
    Representation,
)
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.http.response import Edition, Response, text_response
from clusterregistry.apiserver.registry.broadcaster import Encode
from clusterregistry.apiserver.registry.list import Listed
from clusterregistry.apiserver.registry.worker_pool import LARGE, run_in_worker
from clusterregistry.apiserver.storage.interface import KeyValue

JSON_TYPE = JSON.encode()
YAML_TYPE = YAML.encode()
PROTOBUF_TYPE = PROTOBUF.encode()
PROTOBUF_STREAM_TYPE = b"application/vnd.kubernetes.protobuf;stream=watch"


def object_response(
    scope: RequestScope, kv: KeyValue, representation: Representation, *, status: int = 200, include: str = ""
) -> Response:
    """One object. Raises 400 and 406."""
    if representation.is_plain:
        return Response(status, JSON_TYPE, (scope.object_bytes(kv) + b"\n",))
    if representation.kind == METADATA_LIST:
        raise errors.failure(406, "NotAcceptable", _no_list(scope))
    include = _checked_include(scope, representation, include)
    return _response(status, _object_bytes(scope, kv, representation, include=include), representation)


def _no_list(scope: RequestScope) -> str:
    """kube-apiserver's message for an object that is requested as a list; that of a native kind has its Go type."""
    resource = scope.resource
    if not resource.native:
        return "content is not a list"
    go_type = f"*{(resource.group or 'core').partition('.')[0]}.{resource.kind}"
    return f"you requested {METADATA_LIST}, but the requested object is not a list ({go_type})"


async def large_object_response(
    scope: RequestScope, kv: KeyValue, representation: Representation, *, include: str = ""
) -> Response:
    """The response with a large object, encoded in a worker. Raises 400 and 406."""
    work = partial(object_response, scope, kv, representation, include=include)
    return await run_in_worker(work, size=len(kv.value))


def _object_bytes(scope: RequestScope, kv: KeyValue, representation: Representation, *, include: str) -> bytes:
    if representation.kind == TABLE:
        return _single_table(scope, kv, representation.version, include=include, columns=_columns(scope))
    if representation.kind:
        return single(PartialObjects(scope, version=representation.version), kv)
    return scope.object_bytes(kv)


def _single_table(scope: RequestScope, kv: KeyValue, version: str, *, include: str, columns: bytes) -> bytes:
    head = table.table_head(_version_only(kv.revision), version, columns)
    row = table.Rows(scope, include=include, version=version, now=time.time())
    return head + single(row, kv) + table.TABLE_TAIL


def _version_only(revision: int) -> dict[str, Any]:
    return {"resourceVersion": str(revision)} if revision else {}


def _columns(scope: RequestScope) -> bytes:
    return table.column_definitions(scope.version.columns)


def _checked_include(scope: RequestScope, representation: Representation, include: str) -> str:
    """Checks ``includeObject`` for tables; other representations ignore it."""
    return table.include_policy(include, native=scope.resource.native) if representation.kind == TABLE else include


async def list_response(
    scope: RequestScope, listed: Listed, representation: Representation, *, include: str = ""
) -> Response:
    """The response with a collection or a page of it. Raises 400 and 406."""
    if representation.kind == METADATA:
        detail = f"you requested {METADATA}, but the requested object is a list ({scope.resource.list_kind})"
        raise errors.failure(406, "NotAcceptable", detail)
    include = _checked_include(scope, representation, include)
    head, form, tail = _list_parts(scope, listed, representation, include=include)
    edition = _edition(scope, listed, representation) if representation.kind != TABLE else None
    body = await lazy_list(head, form, listed.items, tail, edition=edition)
    if representation.media_type == JSON and not representation.pretty:
        return Response(200, JSON_TYPE, body)
    if body.length <= LARGE or representation.media_type == PROTOBUF:
        return _response(200, b"".join(body), representation)
    items = (form.join(listed.items, index, index + 1).removeprefix(b",") for index in range(len(listed.items)))
    work = partial(_long_list_response, head + tail, items, representation)
    return await run_in_worker(work, size=body.length)


def _long_list_response(frame: bytes, items: Iterator[bytes], representation: Representation) -> Response:
    if representation.media_type == YAML:
        return Response(200, YAML_TYPE, (list_encoding.yaml_list(frame, items),))
    return Response(200, JSON_TYPE, (list_encoding.pretty_list(frame, items), b"\n"))


def _list_parts(
    scope: RequestScope, listed: Listed, representation: Representation, *, include: str
) -> tuple[bytes, Form, bytes]:
    """The bytes before the items of a list, the form of the items, and the bytes behind them."""
    version, metadata = representation.version, list_metadata(listed)
    if representation.kind or scope.resource.native:
        metadata = {name: value for name, value in metadata.items() if value != ""}
    if representation.kind == TABLE:
        head = table.table_head(metadata, version, _columns(scope))
        return head, table.Rows(scope, include=include, version=version, now=time.time()), b"]}\n"
    if representation.kind:
        head = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/%b","metadata":%b,"items":['
        head %= (version.encode(), orjson.dumps(metadata))
        return head, PartialObjects(scope, version=version), b"]}\n"
    head = b'{"apiVersion":"%b","items":[' % scope.group_version.encode()
    tail = b'],"kind":"%b","metadata":%b}\n' % (scope.resource.list_kind.encode(), orjson.dumps(metadata))
    return head, listed_objects(scope), tail


def _edition(scope: RequestScope, listed: Listed, representation: Representation) -> Edition | None:
    """The edition of a list of all objects, which is the same for all users who may see them."""
    if not listed.is_everything:
        return None
    return Edition((scope.group_version, scope.resource.plural, representation), listed.revision)


def list_metadata(listed: Listed) -> dict[str, Any]:
    """In kube-apiserver's order; lists of custom resources have ``continue`` even if it is empty."""
    metadata: dict[str, Any] = {"continue": listed.continue_token}
    if listed.remaining is not None:
        metadata["remainingItemCount"] = listed.remaining
    metadata["resourceVersion"] = str(listed.revision)
    return metadata


def _response(status: int, body: bytes, representation: Representation) -> Response:
    """A response in YAML, protobuf or indented JSON, from compact JSON."""
    if representation.media_type == PROTOBUF:
        return Response(status, PROTOBUF_TYPE, (_encode_protobuf(orjson.loads(body)),))
    if representation.media_type == YAML:
        return Response(status, YAML_TYPE, (yaml_codec.encode(orjson.loads(body)),))
    if representation.pretty:
        return Response(status, JSON_TYPE, (json_codec.encode_pretty(orjson.loads(body)) + b"\n",))
    return Response(status, JSON_TYPE, (body + b"\n",))


def _encode_protobuf(value: dict[str, Any]) -> bytes:
    from clusterregistry.apimachinery.codecs import protobuf_codec  # noqa: PLC0415 - dear to import, rarely needed

    return protobuf_codec.encode(value)


def ordered_response(status: int, value: dict[str, Any], representation: Representation) -> Response:
    """A Status or a review, in the order of the dict: as kube-apiserver writes its own kinds."""
    if representation.media_type == PROTOBUF:
        return Response(status, PROTOBUF_TYPE, (_encode_protobuf(value),))
    if representation.media_type == YAML:
        return Response(status, YAML_TYPE, (yaml_codec.encode(value),))
    indent = orjson.OPT_INDENT_2 if representation.pretty else 0
    return Response(status, JSON_TYPE, (orjson.dumps(value, option=indent | orjson.OPT_APPEND_NEWLINE),))


def status_response(request: Request, status: Status, *, code: int = 200) -> Response:
    """A Status in the media type that the client accepts; JSON if it accepts none of ours."""
    return ordered_response(code, status, negotiation.negotiate_status(request))


def error_response(request: Request, error: APIError) -> Response:
    """The Status of an error, and its Retry-After."""
    answer = status_response(request, error.status, code=error.code)
    if error.retry_after is not None:
        answer.headers.append((b"retry-after", str(error.retry_after).encode()))
    return answer


def json_response(value: Any, *, status: int = 200) -> Response:
    """JSON in the order of the dict."""
    return Response(status, JSON_TYPE, (orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE),))


def page_not_found() -> Response:
    """The response to an unknown path: plain text and no Status, as in kube-apiserver."""
    return text_response("404 page not found\n", status=404)


def event_encoder(scope: RequestScope, representation: Representation, *, include: str) -> Encode:
    """The encoder of a watch's events in this representation. Raises 400."""
    include = _checked_include(scope, representation, include)
    if representation.is_plain and scope.is_stored_version:
        return lambda kind, kv: event_bytes(kind, scope.object_bytes(kv))
    frame = event_framer(representation)
    return lambda kind, kv: frame(kind, _event_object(scope, kv, representation, include=include))


def event_framer(representation: Representation) -> Callable[[str, bytes], bytes]:
    """Makes one frame of a watch from the type of the event and its object in JSON."""
    return _protobuf_event_bytes if representation.media_type == PROTOBUF else event_bytes


def _protobuf_event_bytes(kind: str, obj: bytes) -> bytes:
    from clusterregistry.apimachinery.codecs import protobuf_codec  # noqa: PLC0415 - dear to import, rarely needed

    return protobuf_codec.encode_event(kind, orjson.loads(obj))


def _event_object(scope: RequestScope, kv: KeyValue, representation: Representation, *, include: str) -> bytes:
    if representation.kind == TABLE:
        return _single_table(scope, kv, representation.version, include=include, columns=table.NO_COLUMNS)
    return _object_bytes(scope, kv, representation, include=include)


def event_bytes(kind: str, obj: bytes) -> bytes:
    """One frame of a watch around an encoded object."""
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), obj)


def with_columns(scope: RequestScope, frame: bytes, representation: Representation) -> bytes:
    """Adds the columns to a watch's first table; later tables have none."""
    if representation.kind != TABLE:
        return frame
    return frame.replace(b'"columnDefinitions":null', b'"columnDefinitions":' + _columns(scope), 1)


def bookmark_bytes(
    scope: RequestScope, revision: int, representation: Representation, *, initial_events_end: bool
) -> bytes:
    """A BOOKMARK frame: the revision up to which the watcher has seen all events."""
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if initial_events_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    encoded = orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS)
    if not representation.kind:
        obj = orjson.dumps(
            {"apiVersion": scope.group_version, "kind": scope.resource.kind, "metadata": metadata},
            option=orjson.OPT_SORT_KEYS,
        )
    else:
        obj = partial_head(representation.version) + encoded + b"}"
    if representation.kind == TABLE:
        cells = orjson.dumps([None] * len(scope.version.columns))
        head = table.table_head(_version_only(revision), representation.version, table.NO_COLUMNS)
        obj = head + b'{"cells":' + cells + b',"object":' + obj + b"}" + table.TABLE_TAIL
    return event_framer(representation)("BOOKMARK", obj)
