"""Kubernetes' protobuf: ``application/vnd.kubernetes.protobuf``, for the kinds in ``kubernetes_messages``.

A body is four bytes that say what it is, and a message ``Unknown`` that names the kind and holds the object's own
message. kubectl 1.32 and later sends the kinds of Kubernetes so. Decoding gives the value that JSON would have given.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError as ParseError

from clusterregistry.apimachinery.codecs.decoded import MAX_VALUES, TOO_MANY_VALUES, Decoded, DecodeError
from clusterregistry.apimachinery.codecs.kubernetes_messages import CLASSES, KINDS
from clusterregistry.apimachinery.codecs.kubernetes_values import from_message, into_message
from clusterregistry.apimachinery.codecs.protobuf_wire import MalformedError, has_more_values

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"

_UNKNOWN = CLASSES["Unknown"]


def decode(body: bytes, *, default_type: tuple[str, str] = ("", "")) -> Decoded:
    """The object of a body as JSON would give it. An envelope without a kind holds ``default_type``.

    Raises DecodeError: for what is no such body, and for a kind that does not travel so.
    """
    if not body:
        raise DecodeError("empty data")
    if not body.startswith(MAGIC):
        prefix = " ".join(map(str, MAGIC))
        raise DecodeError(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    if len(body) == len(MAGIC):
        raise DecodeError("empty body")
    envelope = _parsed(_UNKNOWN, body[len(MAGIC) :], "the envelope")
    if envelope.contentEncoding:
        raise DecodeError(f"the envelope's content encoding {envelope.contentEncoding!r} is not supported")
    api_version = envelope.typeMeta.apiVersion or default_type[0]
    kind = envelope.typeMeta.kind or default_type[1]
    name = KINDS.get((api_version, kind))
    if name is None:
        raise DecodeError(f"no kind {kind!r} of version {api_version!r} is sent as protobuf here")
    message = _parsed(CLASSES[name], envelope.raw, kind)
    return Decoded({"kind": kind, "apiVersion": api_version} | from_message(message))


def encode(value: dict[str, Any]) -> bytes:
    """The body for an object that names one of the kinds. What the kind's message has no field for is left out."""
    api_version, kind = value["apiVersion"], value["kind"]
    message = CLASSES[KINDS[api_version, kind]]()
    into_message(message, value)
    envelope = _UNKNOWN(raw=message.SerializeToString(deterministic=True))
    envelope.typeMeta.apiVersion, envelope.typeMeta.kind = api_version, kind
    return MAGIC + bytes(envelope.SerializeToString(deterministic=True))


def _parsed(cls: Any, data: bytes, what: str) -> Any:
    try:
        if has_more_values(data, cls.DESCRIPTOR, MAX_VALUES):
            raise DecodeError(TOO_MANY_VALUES)
        return cls.FromString(data)
    except (MalformedError, ParseError):
        raise DecodeError(f"the protobuf message of {what} is malformed or cut off") from None
