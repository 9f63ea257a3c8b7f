"""Answers that are a Status: every error, and a delete that removed its object."""

from __future__ import annotations

import orjson

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.meta.errors import APIError, Status
from clusterregistry.apiserver.endpoints import negotiation
from clusterregistry.apiserver.http.request import Request
from clusterregistry.apiserver.http.response import JSON, PROTOBUF, YAML, Response, protobuf_body


def response(request: Request, status: Status, *, code: int = 200) -> Response:
    """A Status in the media type that the client takes, JSON if it takes none of ours."""
    representation = negotiation.status_representation(
        request.header("accept"),
        pretty=request.query.first("pretty"),
        user_agent=request.header("user-agent"),
    )
    if representation.media_type == negotiation.PROTOBUF:
        return Response(code, PROTOBUF, (protobuf_body(status),))
    if representation.media_type == negotiation.YAML:
        return Response(code, YAML, (yaml_codec.encode(status),))
    indent = orjson.OPT_INDENT_2 if representation.pretty else 0
    # In the order of the dict: a Status starts with its kind, as kube-apiserver writes it.
    return Response(code, JSON, (orjson.dumps(status, option=indent | orjson.OPT_APPEND_NEWLINE),))


def error_response(request: Request, error: APIError) -> Response:
    """The Status of an error, and its Retry-After."""
    answer = response(request, error.status, code=error.code)
    if error.retry_after is not None:
        answer.headers.append((b"retry-after", str(error.retry_after).encode()))
    return answer
