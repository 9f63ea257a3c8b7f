"""Long lists in YAML and in indented JSON, made item by item.

As a whole, twenty objects of a hundred thousand values took 310 MB and kept the interpreter for a second. The text is
the same that the codecs write of the whole list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from clusterregistry.apimachinery.codecs import json_codec, yaml_codec

Items = Iterator[bytes]
"""Each as compact JSON; there is at least one."""

_Write = Callable[[str, Any], bytes]


def yaml_list(frame: bytes, items: Items) -> bytes:
    """A list in YAML. ``frame`` is the list as JSON, without the items."""
    return b"".join(_entries(frame, _yaml_entry, _yaml_items(items)))


def pretty_list(frame: bytes, items: Items) -> bytes:
    """The same in indented JSON."""
    return b"{\n" + b",\n".join(_entries(frame, _pretty_entry, _pretty_items(items))) + b"\n}"


def _entries(frame: bytes, write: _Write, items: Callable[[str], bytes]) -> Iterator[bytes]:
    """The entries of the outermost map, in order. The items of a table are its rows."""
    value = orjson.loads(frame)
    for key in sorted(value):
        yield items(key) if key in ("items", "rows") else write(key, value[key])


def _yaml_entry(key: str, value: Any) -> bytes:
    return yaml_codec.encode({key: value})


def _yaml_items(items: Items) -> Callable[[str], bytes]:
    # No text of ours has a line feed within a value: such values are in quotes, with escapes.
    return lambda key: b"%b:\n" % key.encode() + b"".join(b"- " + _below(_yaml(item), b"  ") + b"\n" for item in items)


def _yaml(item: bytes) -> bytes:
    return yaml_codec.encode(orjson.loads(item)).rstrip(b"\n")


def _pretty_entry(key: str, value: Any) -> bytes:
    return _below(b"  " + orjson.dumps(key) + b": " + json_codec.encode_pretty(value), b"  ")


def _pretty_items(items: Items) -> Callable[[str], bytes]:
    texts = (b"    " + _below(json_codec.encode_pretty(orjson.loads(item)), b"    ") for item in items)
    return lambda key: b'  "%b": [\n' % key.encode() + b",\n".join(texts) + b"\n  ]"


def _below(text: bytes, indent: bytes) -> bytes:
    """A text whose further lines are indented."""
    return text.replace(b"\n", b"\n" + indent)
