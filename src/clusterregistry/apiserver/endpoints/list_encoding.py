"""Encodes the items of lists: objects, their metadata, or nothing, as JSON in pieces; long lists also as YAML."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import orjson

from clusterregistry.apimachinery.codecs import json_codec, yaml_codec
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.http.response import Edition, LazyBody
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import metadata_of, metadata_size, size_of

_PIECE = 64 * 1024
"""Bytes of a list that are joined at a time, approximately: one big write costs three times as much."""

_METADATA = b'"metadata":{'

_SLICES_ALIKE = 4
"""Slices whose items are joined in pieces of the same number, so that no piece is much smaller than _PIECE."""

_SLICE = 64
"""Items that are measured between two looks at the clock: so many rows of a table take half a millisecond."""

_TURN_SECONDS = 0.0005
"""Seconds after which other requests have their turn. A request takes two or three turns."""


class Form(Protocol):
    """How the items of one list are encoded."""

    def measure(self, items: Sequence[KeyValue]) -> int:
        """The size of some items in bytes, without the commas.

        All of the list are measured, one after the other, before the first of them is joined.
        """
        ...

    def join(self, items: Sequence[KeyValue], start: int, end: int) -> bytes:
        """The items from start to end as JSON, with a comma before each, so that they need not be copied again."""
        ...


class Included(Protocol):
    """The object in each row of a table: ``before`` and ``behind`` are the bytes around its part."""

    before: bytes
    behind: bytes

    def parts(self, items: Sequence[KeyValue]) -> Sequence[bytes]:
        """The part of each object."""
        ...


class WholeObjects:
    """The objects themselves."""

    before = behind = b""

    def __init__(self, scope: RequestScope) -> None:
        self._scope = scope

    def join(self, items: Sequence[KeyValue], start: int, end: int) -> bytes:
        return b",".join([b"", *self.parts(items[start:end])])

    def parts(self, items: Sequence[KeyValue]) -> Sequence[bytes]:
        return [kv.value for kv in self._scope.in_version(items)]

    def measure(self, items: Sequence[KeyValue]) -> int:
        return size_of(self._scope.in_version(items))


class UntypedObjects:
    """The objects without ``apiVersion`` and ``kind``, which the list has for all of them.

    Where no field of the kind sorts in between, both are right before the metadata, since the keys of an object are
    sorted, and no property that sorts before them holds another object named metadata. Else objects are decoded.
    """

    def __init__(self, scope: RequestScope) -> None:
        self._objects = WholeObjects(scope)
        self._typed = b'"apiVersion":"%b","kind":"%b",' % tuple(text.encode() for text in scope.type) + _METADATA
        self._are_adjacent = scope.is_stored_version and not any(
            "apiVersion" < field < "metadata" for field in scope.version.schema.fields
        )

    def join(self, items: Sequence[KeyValue], start: int, end: int) -> bytes:
        return b",".join([b"", *self._parts(items[start:end])])

    def measure(self, items: Sequence[KeyValue]) -> int:
        return sum(map(len, self._parts(items)))

    def _parts(self, items: Sequence[KeyValue]) -> Sequence[bytes]:
        if self._are_adjacent:
            return [part.replace(self._typed, _METADATA, 1) for part in self._objects.parts(items)]
        return [_without_type(part) for part in self._objects.parts(items)]


def _without_type(part: bytes) -> bytes:
    obj = orjson.loads(part)
    del obj["apiVersion"], obj["kind"]
    return orjson.dumps(obj)


class PartialObjects:
    """PartialObjectMetadata: the metadata of the objects alone."""

    behind = b"}"

    def __init__(self, scope: RequestScope, *, version: str) -> None:
        self._scope = scope
        self.before = partial_head(version)

    def join(self, items: Sequence[KeyValue], start: int, end: int) -> bytes:
        around = self.behind + b"," + self.before
        return b"," + self.before + around.join(self.parts(items[start:end])) + self.behind

    def parts(self, items: Sequence[KeyValue]) -> Sequence[bytes]:
        return metadata_of(self._scope.in_version(items))

    def measure(self, items: Sequence[KeyValue]) -> int:
        return len(items) * len(self.before + self.behind) + metadata_size(self._scope.in_version(items))


class NoObjects:
    """null for each object."""

    before = behind = b""

    def parts(self, items: Sequence[KeyValue]) -> Sequence[bytes]:
        return [b"null"] * len(items)


def listed_objects(scope: RequestScope) -> Form:
    """The objects of a list; those of native kinds without their type, as in kube-apiserver."""
    return UntypedObjects(scope) if scope.resource.native else WholeObjects(scope)


def partial_head(version: str) -> bytes:
    """A PartialObjectMetadata up to its metadata."""
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b","metadata":' % version.encode()


def single(form: Form, kv: KeyValue) -> bytes:
    """One object in the form of an item."""
    form.measure([kv])
    return form.join([kv], 0, 1).removeprefix(b",")


async def lazy_list(
    head: bytes, form: Form, items: Sequence[KeyValue], tail: bytes, *, edition: Edition | None = None
) -> LazyBody:
    """All items between ``head`` and ``tail``, with commas between them."""
    sizes, begun = [], time.monotonic()
    for start in range(0, len(items), _SLICE):
        if time.monotonic() - begun > _TURN_SECONDS:
            await asyncio.sleep(0)
            begun = time.monotonic()
        sizes.append(form.measure(items[start : start + _SLICE]))
    commas = max(len(items) - 1, 0)
    length = len(head) + sum(sizes) + commas + len(tail)
    return LazyBody(lambda: _pieces(head, _joined(form, items, sizes), tail), length=length, edition=edition)


def _joined(form: Form, items: Sequence[KeyValue], sizes: Sequence[int]) -> Iterator[bytes]:
    """Joins some items at a time: about as many as fit into a piece, by the size of their slices."""
    for index in range(0, len(sizes), _SLICES_ALIKE):
        first = index * _SLICE
        last = min(first + _SLICES_ALIKE * _SLICE, len(items))
        pieces = math.ceil(sum(sizes[index : index + _SLICES_ALIKE]) / _PIECE)
        step = math.ceil((last - first) / pieces)
        for start in range(first, last, step):
            yield form.join(items, start, min(start + step, last))


def _pieces(head: bytes, joined: Iterator[bytes], tail: bytes) -> Iterator[bytes]:
    """Joins head and tail with items, since each piece is a write."""
    piece = head + next(joined, b"").removeprefix(b",")
    for following in joined:
        yield piece
        piece = following
    yield piece + tail


# Long lists in YAML and in indented JSON are made item by item. As a whole, twenty objects of a hundred thousand values
# took 310 MB and kept the interpreter for a second. The text is the same that the codecs write of the whole list.

Items = Iterator[bytes]
"""Each as compact JSON; there is at least one."""

_Write = Callable[[str, Any], bytes]


def yaml_list(frame: bytes, items: Items) -> bytes:
    """A long list in YAML. ``frame`` is the list as JSON, without the items."""
    return b"".join(_entries(frame, _yaml_entry, _yaml_items(items)))


def pretty_list(frame: bytes, items: Items) -> bytes:
    """A long list in indented JSON."""
    return b"{\n" + b",\n".join(_entries(frame, _pretty_entry, _pretty_items(items))) + b"\n}"


def _entries(frame: bytes, write: _Write, items: Callable[[str], bytes]) -> Iterator[bytes]:
    """The entries of the outermost map, in order. The items of a table are its rows."""
    value = orjson.loads(frame)
    for key in sorted(value):
        yield items(key) if key in ("items", "rows") else write(key, value[key])


def _yaml_entry(key: str, value: Any) -> bytes:
    return yaml_codec.encode({key: value})


def _yaml_items(items: Items) -> Callable[[str], bytes]:
    # The codec writes no line feed within a value: it quotes and escapes such values.
    return lambda key: (
        b"%b:\n" % key.encode() + b"".join(b"- " + _indented(_yaml(item), b"  ") + b"\n" for item in items)
    )


def _yaml(item: bytes) -> bytes:
    return yaml_codec.encode(orjson.loads(item)).rstrip(b"\n")


def _pretty_entry(key: str, value: Any) -> bytes:
    return _indented(b"  " + orjson.dumps(key) + b": " + json_codec.encode_pretty(value), b"  ")


def _pretty_items(items: Items) -> Callable[[str], bytes]:
    texts = (b"    " + _indented(json_codec.encode_pretty(orjson.loads(item)), b"    ") for item in items)
    return lambda key: b'  "%b": [\n' % key.encode() + b",\n".join(texts) + b"\n  ]"


def _indented(text: bytes, indent: bytes) -> bytes:
    """Indents all lines but the first."""
    return text.replace(b"\n", b"\n" + indent)
