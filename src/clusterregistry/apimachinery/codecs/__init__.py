"""Decodes and encodes wire values as JSON, YAML and protobuf, with kube-apiserver's semantics.

A wire value is made of dict, list, str, int, float, bool and None only. The package is pure: it does no I/O and
validates nothing beyond the syntax. It knows no kind of object, except for the protobuf messages of native kinds
(``protobuf_messages``). Decoding raises nothing but ``DecodeError``, whatever the bytes.
"""

from clusterregistry.apimachinery.codecs.decoded import (
    MAX_DEPTH,
    MAX_STRICT_ERRORS,
    Decoded,
    DecodeError,
    cut,
    too_deep,
)

__all__ = ["MAX_DEPTH", "MAX_STRICT_ERRORS", "DecodeError", "Decoded", "cut", "too_deep"]
