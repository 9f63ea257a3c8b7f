"""Builds a wire value from YAML events, as go-yaml v2 does.

libyaml scans, the builder interprets the events. It has a stack of its own, so that no nesting exhausts Python's, and
expands aliases only as far as go-yaml does.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import math
import re
import struct
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import yaml

from clusterregistry.apimachinery.codecs.decoded import (
    MAX_DEPTH,
    MAX_STRICT_ERRORS,
    MAX_VALUES,
    TOO_MANY_VALUES,
    YAML_ERRORS,
    Decoded,
    DecodeError,
    cut,
    too_deep,
)

_FEW_ALIASED, _FEW_DECODED = 100, 1000
_SMALL, _LARGE = 400_000, 4_000_000
"""Numbers of nodes between which go-yaml lowers the share that may come from aliases from 99% to 10%."""

_MOST_NODES = 2 * MAX_VALUES
"""Keys are nodes, too."""

_MOST_ALIASED_BYTES = 3 * 1024 * 1024
"""The size of all aliases as JSON: go-yaml counts nodes only, and one node can be a text of megabytes. A document
without aliases cannot be larger either."""

_MOST_DIRECTIVE_BYTES = 4096
"""Of all tag directives. libyaml compares each of them with all others and with each tag, and expands each use of one:
two megabytes of them took a minute."""

_TAG_DIRECTIVES = re.compile(rb"(?:^|\A\xef\xbb\xbf|\r|\xc2\x85|\xe2\x80[\xa8\xa9])(%TAG[^\r\n]*)", re.MULTILINE)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_EXCESSIVE = "yaml: document contains excessive aliasing"
_NOT_MERGEABLE = "yaml: map merge requires map or sequence of maps as the value"


class _Unset:
    """No key is waiting for its value."""


_UNSET = _Unset()


class _Merge:
    """The key ``<<``."""


_MERGE = _Merge()


@dataclass(slots=True, eq=False)
class _Node:
    """The node of an anchor. ``open``: its end has not been read yet."""

    value: Any
    line: int
    size: int = 1
    open: bool = False


@dataclass(slots=True, eq=False)
class _Sequence(_Node):
    merged: bool = False
    """Whether this is the value of a merge key; only then ``items`` has them as nodes."""
    items: list[_Node | None] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Mapping(_Node):
    key: Any = _UNSET
    lines: dict[Any, int] = field(default_factory=dict)
    """The line of each key's value; keys that go-yaml keeps apart (1 and "1") are apart here too."""


def read(body: bytes, *, strict: bool = True) -> Decoded:
    """The first document of a YAML stream; ``strict_errors`` names repeated keys if ``strict``. Raises DecodeError."""
    _check_directives(body)
    builder = _Builder(most_repeated=MAX_STRICT_ERRORS if strict else 0)
    try:
        builder.run(yaml.CSafeLoader(body))
    except yaml.MarkedYAMLError as error:
        raise DecodeError(f"yaml: {_place(error)}{error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise DecodeError(f"yaml: {error.reason}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise DecodeError(f"yaml: {error}") from None
    if builder.aliased and too_deep(builder.value):
        raise DecodeError("yaml: exceeded max depth")
    return Decoded(builder.value, strict_errors=builder.strict_errors())


def _check_directives(body: bytes) -> None:
    """Raises DecodeError for too many tag directives. A text that looks like a directive counts as one."""
    if body.find(b"%") < 0:
        return
    text = body.decode("utf-16", "replace").encode() if body.startswith(_UTF_16) else body
    if sum(len(found[1]) for found in _TAG_DIRECTIVES.finditer(text)) > _MOST_DIRECTIVE_BYTES:
        raise DecodeError(f"yaml: the tag directives take more than {_MOST_DIRECTIVE_BYTES} bytes")


def _place(error: yaml.MarkedYAMLError) -> str:
    """The line as go-yaml reports it: a parser's line is counted from 0, a scanner's from 1, and line 0 is left out."""
    if error.problem_mark and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    else:
        line = error.context_mark.line if error.context_mark else 0
    return f"line {line}: " if line else ""


class _Builder:
    """Builds the value from events. Events are Any: their types do not say that the parser sets all marks."""

    def __init__(self, *, most_repeated: int) -> None:
        self.value: Any = None
        self.decoded = 0
        self.aliased = 0
        self._aliased_bytes = 0
        self._stack: list[_Sequence | _Mapping] = []
        self._top: _Sequence | _Mapping | None = None
        self._anchors: dict[str, _Node] = {}
        self._repeated: list[str] = []
        self._most_repeated = most_repeated

    def run(self, parser: yaml.CSafeLoader) -> None:
        """Reads the first document; go-yaml ignores the rest of the stream, too."""
        on = _HANDLERS
        while (event := parser.get_event()) is not None:
            kind = type(event)
            if kind in on:
                on[kind](self, event)
            elif kind is yaml.DocumentEndEvent:
                return

    def strict_errors(self) -> list[str]:
        """One error that lists the first repeated keys, as go-yaml's strict mode words it."""
        return [YAML_ERRORS + "\n".join("  " + line for line in self._repeated)] if self._repeated else []

    def scalar(self, event: Any) -> None:
        value: Any = event.value
        plain, tag = event.implicit[0], event.tag
        if value == "<<" and (plain or tag == MERGE_TAG) and self._expects_key():
            value = _MERGE
        elif tag is not None:
            value = resolve_tagged(value, tag)
        elif plain:
            value = resolve(value)
        line = event.start_mark.line
        if event.anchor is not None:
            self._anchors[event.anchor] = _Node(value, line)
        self._place(value, line=line)

    def mapping_start(self, event: Any) -> None:
        self._start(event, _Mapping({}, event.start_mark.line, open=True))

    def sequence_start(self, event: Any) -> None:
        self._start(event, _Sequence([], event.start_mark.line, open=True, merged=self._expects_merged()))

    def _start(self, event: Any, node: _Sequence | _Mapping) -> None:
        if self._expects_key():
            raise DecodeError("yaml: invalid map key")
        if len(self._stack) >= MAX_DEPTH:
            raise DecodeError("yaml: exceeded max depth")
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._stack.append(node)
        self._top = node

    def end(self, _event: Any) -> None:
        node = self._stack.pop()
        node.open = False
        self._top = self._stack[-1] if self._stack else None
        self._place(node.value, line=node.line, node=node)

    def alias(self, event: Any) -> None:
        node = self._anchors.get(event.anchor)
        if node is None:
            raise DecodeError(f"yaml: unknown anchor '{event.anchor}' referenced")
        if node.open:
            raise DecodeError(f"yaml: anchor '{event.anchor}' value contains itself")
        if self._expects_key() and isinstance(node, _Sequence | _Mapping):
            raise DecodeError("yaml: invalid map key")
        if self._expects_merged() and not isinstance(node, _Mapping):
            raise DecodeError(_NOT_MERGEABLE)
        self._count_aliased(node.size)
        copy = replace(node, value=self._copied(node.value), line=event.start_mark.line)
        self._place(copy.value, line=copy.line, node=copy)

    def _copied(self, value: Any) -> Any:
        """Copies the value for each alias: a change in one place must not change another."""
        if isinstance(value, str):
            self._count_aliased_bytes(len(value) if value.isascii() else len(value.encode("utf-8", "replace")))
            return value
        if not isinstance(value, (dict, list)):
            return value
        try:
            encoded = orjson.dumps(value)
        except TypeError:
            raise DecodeError("yaml: exceeded max depth") from None
        self._count_aliased_bytes(len(encoded))
        return orjson.loads(encoded)

    def _place(self, value: Any, *, line: int, node: _Node | None = None) -> None:
        """Adds a finished value to its parent: as the document, an item, a key or a value."""
        self.decoded += 1
        if self.decoded > _MOST_NODES:
            raise DecodeError(f"yaml: {TOO_MANY_VALUES}")
        top = self._top
        if top is None:
            self.value = as_json(value)
            return
        top.size += node.size if node else 1
        if isinstance(top, _Sequence):
            top.value.append(as_json(value))
            if top.merged:
                top.items.append(node)
        elif top.key is _UNSET:
            top.key = value
        elif top.key is _MERGE:
            top.key = _UNSET
            self._merge(top, node)
        else:
            key, top.key = top.key, _UNSET
            self._set(top, key, value=value, line=line)

    def _set(self, mapping: _Mapping, key: Any, *, value: Any, line: int) -> None:
        identity = key if isinstance(key, str) else (type(key), key)
        if identity in mapping.lines and len(self._repeated) < self._most_repeated:
            shown = orjson.dumps(cut(key) if isinstance(key, str) else key).decode()
            self._repeated.append(f"line {line + 1}: key {shown} already set in map")
        mapping.lines[identity] = line
        if type(key) is float:  # writing one takes as long as reading another node
            self.decoded += 1
        mapping.value[as_key(key)] = as_json(value)

    def _merge(self, mapping: _Mapping, node: _Node | None) -> None:
        # Earlier maps of a list take precedence, and what is set last stays.
        parts = reversed(node.items) if isinstance(node, _Sequence) else iter([node])
        for part in parts:
            if not isinstance(part, _Mapping):
                raise DecodeError(_NOT_MERGEABLE)
            # Maps merged into maps cost as much as aliases do, and are bounded like them.
            self._count_aliased(len(part.lines))
            for identity, line in part.lines.items():
                key = identity if isinstance(identity, str) else identity[1]
                self._set(mapping, key, value=part.value[as_key(key)], line=line)

    def _expects_key(self) -> bool:
        top = self._top
        return isinstance(top, _Mapping) and top.key is _UNSET

    def _expects_merged(self) -> bool:
        top = self._top
        return isinstance(top, _Mapping) and top.key is _MERGE

    def _count_aliased(self, nodes: int) -> None:
        """go-yaml's guard against small documents that expand to huge ones."""
        self.aliased += nodes
        self.decoded += nodes
        if self.aliased <= _FEW_ALIASED or self.decoded <= _FEW_DECODED:
            return
        large = min(max(self.decoded - _SMALL, 0) / (_LARGE - _SMALL), 1)
        if self.aliased / self.decoded > 0.99 - 0.89 * large:
            raise DecodeError(_EXCESSIVE)

    def _count_aliased_bytes(self, count: int) -> None:
        self._aliased_bytes += count
        if self._aliased_bytes > _MOST_ALIASED_BYTES:
            raise DecodeError(_EXCESSIVE)


# Outside of the instance: bound methods in it would be a cycle for each document.
_HANDLERS: dict[type[yaml.Event], Callable[[_Builder, Any], None]] = {
    yaml.ScalarEvent: _Builder.scalar,
    yaml.MappingStartEvent: _Builder.mapping_start,
    yaml.SequenceStartEvent: _Builder.sequence_start,
    yaml.MappingEndEvent: _Builder.end,
    yaml.SequenceEndEvent: _Builder.end,
    yaml.AliasEvent: _Builder.alias,
}


# Scalars

Scalar = str | int | float | bool | None

_TAG_PREFIX = "tag:yaml.org,2002:"
MERGE_TAG = _TAG_PREFIX + "merge"
_BINARY_TAG = _TAG_PREFIX + "binary"
_FLOAT_TAG = _TAG_PREFIX + "float"

_MIN_INT64, _MAX_INT64, _MAX_UINT64 = -(2**63), 2**63 - 1, 2**64 - 1


def _spellings(*words: str) -> list[str]:
    return [spelling for word in words for spelling in (word, word.capitalize(), word.upper())]


_NAMED: dict[str, Scalar] = {
    **dict.fromkeys(_spellings("y", "yes", "true", "on"), True),
    **dict.fromkeys(_spellings("n", "no", "false", "off"), False),
    **dict.fromkeys(["", "~", *_spellings("null")]),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], math.inf),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
}

_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)|(?P<decimal>0|[1-9][0-9]*))"
)
_BASES = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LONGEST_INTEGER = 70
"""Characters, sign and prefix included: more than 64 binary digits are no integer, whatever the base."""

_POSITIONAL_EXPONENTS = range(-4, 6)
"""Outside of these Go writes a float with an exponent, whatever the number of its digits."""

_DIGITS = range(9)
"""Behind the first one; nine in all are enough for any float of 32 bits."""

_TYPE_TAGS = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}


def resolve(text: str) -> Scalar:
    """The value of a plain scalar without a tag."""
    if text and text[0] in "+-.0123456789":
        return _NAMED[text] if text in _NAMED else _number(text)
    return _NAMED.get(text, text)


def resolve_tagged(text: str, tag: str) -> Scalar:
    """The value of a scalar with an explicit tag. Raises DecodeError for a text of another type."""
    kind = tag.removeprefix(_TAG_PREFIX)
    if tag == _BINARY_TAG:
        return _binary(text)
    if kind not in ("bool", "int", "float", "null"):
        return text
    value = resolve(text)
    if tag == _FLOAT_TAG and type(value) is int:
        return float(value)
    found = _TYPE_TAGS[type(value)]
    if found != kind:
        raise DecodeError(f"yaml: cannot decode !!{found} `{text}` as a !!{kind}")
    return value


def as_json(value: Any) -> Any:
    """The value after a round trip through JSON: whole floats are integers, NaN is an error."""
    if isinstance(value, (str, bool)):  # by far the most frequent
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise DecodeError(f"json: unsupported value: {_go_float_name(value)}")
        return int(value) if value.is_integer() and abs(value) <= _MAX_INT64 else value
    if isinstance(value, int) and value > _MAX_INT64:
        return float(value)
    return value


def as_key(value: Any) -> str:
    """A map's key as a string, for JSON. Raises DecodeError for a type that cannot be a key."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value <= _MAX_INT64:
        return str(value)
    if isinstance(value, float):
        return _float_key(value)
    kind = "%!s(<nil>)" if value is None else "uint64"
    raise DecodeError(f"unsupported map key of type: {kind}")


def _number(text: str) -> Scalar:
    plain = text if text[0] == "." else text.replace("_", "")
    match = _INTEGER.fullmatch(plain) if len(plain) <= _LONGEST_INTEGER else None
    if match and match.lastgroup:
        value = int(match["sign"] + match[match.lastgroup], _BASES[match.lastgroup])
        if _MIN_INT64 <= value <= (_MAX_INT64 if match["sign"] else _MAX_UINT64):
            return value
    if _FLOAT.fullmatch(plain):
        # Beyond the largest float Go's parser reports an error, and the text stays a string.
        return text if math.isinf(float(plain)) else float(plain)
    return text


def _binary(text: str) -> str:
    try:
        data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise DecodeError("yaml: !!binary value contains invalid base64 data") from None
    return data.decode(errors="replace")


def _go_float_name(value: float) -> str:
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _float_key(value: float) -> str:
    """A float as sigs.k8s.io/yaml writes it into a key: the shortest text of its 32 bits."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    try:
        narrow = struct.pack("f", value)
    except OverflowError:
        return ".inf" if value > 0 else "-.inf"
    [value] = struct.unpack("f", narrow)
    # More digits are never less exact, so that few numbers of digits have to be tried.
    digits = bisect_left(_DIGITS, True, key=lambda digits: struct.pack("f", float(f"{value:.{digits}e}")) == narrow)
    text = f"{value:.{digits}e}"
    mantissa, _, exponent = text.partition("e")
    if int(exponent) in _POSITIONAL_EXPONENTS:
        places = max(len(mantissa.lstrip("-").replace(".", "")) - 1 - int(exponent), 0)
        return f"{float(text):.{places}f}"
    return text
