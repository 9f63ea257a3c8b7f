"""Bytes of a request or an answer to and from wire values: JSON, YAML and protobuf, with kube-apiserver's semantics.

A wire value is made of dict, list, str, int, float, bool and None only. The package is pure: it does no I/O and
validates nothing beyond the syntax. It knows no kind of object, but for the messages that native kinds are in protobuf
(``kubernetes_messages``). Whatever the bytes, decoding raises nothing but ``DecodeError``.
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
