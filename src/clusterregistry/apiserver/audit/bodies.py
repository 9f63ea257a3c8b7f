"""Bodies of requests and answers as they stand in events: decoded JSON, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from clusterregistry.apimachinery.codecs import DecodeError, json_codec, yaml_codec

LARGEST = 1024 * 1024
LARGEST_YAML = 64 * 1024
"""Bytes above which a body is left out: one event must not hold up all others. YAML takes long to read."""


class _TooLarge:
    """A body that is left out for its size alone."""


TOO_LARGE: Final = _TooLarge()
_PROTOBUF = "application/vnd.kubernetes.protobuf"


def decoded(body: bytes, content_type: str) -> Any:
    """The value of a body in JSON, YAML or protobuf; TOO_LARGE, or None for any other, and for what is none of them."""
    media_type = content_type.partition(";")[0].strip().lower()
    if not body or not media_type.endswith(("json", "yaml", _PROTOBUF)):
        return None
    if len(body) > (LARGEST_YAML if media_type.endswith("yaml") and body[:1] != b"{" else LARGEST):
        return TOO_LARGE
    try:
        if media_type == _PROTOBUF:
            return _protobuf(body)
        if media_type.endswith("yaml"):
            return yaml_codec.decode(body, strict=False).value
        return _json(body)
    except DecodeError:
        return None


def _protobuf(body: bytes) -> Any:
    from clusterregistry.apimachinery.codecs import kubernetes_protobuf  # noqa: PLC0415 - who answered has imported it by now

    return kubernetes_protobuf.decode(body).value


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json_codec.decode(body, strict=False).value


def without_managed_fields(value: Any) -> Any:
    """The object, or the list of them, without ``metadata.managedFields``."""
    if not isinstance(value, dict):
        return value
    value = _unmanaged(value)
    if isinstance(items := value.get("items"), list):
        value["items"] = [_unmanaged(item) if isinstance(item, dict) else item for item in items]
    return value


def _unmanaged(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return dict(obj)
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
