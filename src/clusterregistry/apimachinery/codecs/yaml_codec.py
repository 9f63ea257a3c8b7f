"""YAML as sigs.k8s.io/yaml reads and writes it: scalars as in go-yaml v2, then converted as by JSON."""

from __future__ import annotations

import math
import re
from json.encoder import encode_basestring
from typing import Any

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.codecs import json_codec
from clusterregistry.apimachinery.codecs.decoded import Decoded, DecodeError

# In block context brackets and quotes are ordinary inside of a plain scalar: fieldsV1 has keys such as k:{"type":"OK"}.
_PLAIN = re.compile(r'[A-Za-z/](?:[A-Za-z0-9_./@+,="{}\[\]()%-]|:(?! |\Z)| (?=[A-Za-z0-9_./(]))*')
_OTHER_MEANINGS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity"})
"""Words that some parser takes for a boolean, a null or a number, in any case."""

_NOT_PRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_LONGEST_SIMPLE_KEY = 1000
"""YAML limits a key before a colon to 1024 characters; longer keys need the explicit form."""


def decode(body: bytes, *, strict: bool = True) -> Decoded:
    """The first document's value, None when there is none; the last of equal keys wins. Raises DecodeError.

    ``strict_errors`` names equal keys if ``strict``.
    """
    if body.startswith(b"{"):
        decoded = _as_json(body, strict=strict)
        if decoded is not None:
            return decoded
    # A slow import, and most servers never read YAML.
    from clusterregistry.apimachinery.codecs.yaml_decoder import read  # noqa: PLC0415

    return read(body, strict=strict)


def encode(value: Any) -> bytes:
    """Block style with sorted keys, which reads back identically in YAML 1.1 and 1.2."""
    return write(value).encode()


def _as_json(body: bytes, *, strict: bool) -> Decoded | None:
    """Decodes JSON, which is YAML, in a fraction of the time; None if the YAML decoder has to report an error."""
    try:
        body.decode()
        decoded = json_codec.decode(body, strict=strict)
    except (UnicodeDecodeError, DecodeError):
        return None
    return None if decoded.duplicates else decoded


# Writing


def write(value: Any) -> str:
    """One document, keys sorted, with a line feed at its end."""
    lines: list[str] = []
    _write(lines, value, indent="", lead="")
    lines.append("")
    return "\n".join(lines)


def _write(lines: list[str], value: Any, *, indent: str, lead: str) -> None:
    """Appends a value; ``lead`` (``key:`` or ``-``) stands in front of it on its first line."""
    if isinstance(value, dict) and value:
        _write_map(lines, value, indent=indent, lead=lead)
    elif isinstance(value, list) and value:
        _write_list(lines, value, indent=indent, lead=lead)
    else:
        lines.append(f"{lead} {_scalar(value)}" if lead else _scalar(value))


def _write_map(lines: list[str], value: dict[str, Any], *, indent: str, lead: str) -> None:
    first = _opened(lines, lead)
    for key in sorted(value):
        child, name = value[key], _string(key)
        start = indent if first is None else first
        first = None
        if len(name) > _LONGEST_SIMPLE_KEY:
            lines.append(f"{start}? {name}")
            start, name = f"{indent}", ""
        # A list stands at its key's own indentation, as kube-apiserver writes it.
        inner = indent if isinstance(child, list) else indent + "  "
        _write(lines, child, indent=inner, lead=f"{start}{name}:")


def _write_list(lines: list[str], value: list[Any], *, indent: str, lead: str) -> None:
    first = _opened(lines, lead)
    for child in value:
        start = indent if first is None else first
        first = None
        _write(lines, child, indent=indent + "  ", lead=f"{start}-")


def _opened(lines: list[str], lead: str) -> str | None:
    """The start of the first entry: on the same line after a dash, None for a new line after a key."""
    if lead.endswith("-"):
        return lead + " "
    if lead:
        lines.append(lead)
    return None


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    return str(value) if isinstance(value, int) else "{}" if isinstance(value, dict) else "[]"


def _float(value: float) -> str:
    if not math.isfinite(value):
        return "null"
    text = repr(value)
    # YAML 1.1 wants a point in every float.
    return text if "." in text else text.replace("e", ".0e")


@bounded_cache(4096, longest=64)
def _string(value: str) -> str:
    """Cached: keys, enumerations and names repeat, long texts do not."""
    if _PLAIN.fullmatch(value) and value.lower() not in _OTHER_MEANINGS:
        return value
    return _NOT_PRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", encode_basestring(value))
