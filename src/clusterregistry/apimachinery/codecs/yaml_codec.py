"""YAML as sigs.k8s.io/yaml reads it: go-yaml v2's meaning of scalars, then the way through JSON."""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.codecs import json_codec
from clusterregistry.apimachinery.codecs.decoded import Decoded, DecodeError
from clusterregistry.apimachinery.codecs.yaml_encoder import write


def decode(body: bytes, *, strict: bool = True) -> Decoded:
    """The first document's value, None when there is none; the last of equal keys wins. Raises DecodeError.

    ``strict_errors`` names equal keys if ``strict``.
    """
    if body.startswith(b"{"):
        decoded = _as_json(body, strict=strict)
        if decoded is not None:
            return decoded
    # Only here: the parser takes its time to import, and most servers never meet YAML.
    from clusterregistry.apimachinery.codecs.yaml_decoder import read  # noqa: PLC0415

    return read(body, strict=strict)


def encode(value: Any) -> bytes:
    """Block style with sorted keys, which reads back identically in YAML 1.1 and 1.2."""
    return write(value).encode()


def _as_json(body: bytes, *, strict: bool) -> Decoded | None:
    """JSON is YAML and read faster as such; what it repeats is worded by the YAML decoder."""
    try:
        body.decode()
        decoded = json_codec.decode(body, strict=strict)
    except (UnicodeDecodeError, DecodeError):
        return None
    return None if decoded.duplicates else decoded
