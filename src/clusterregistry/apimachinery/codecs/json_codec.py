"""JSON as sigs.k8s.io/json reads it: the last of two equal keys wins and the first is remembered as a strict error.

The fast path costs one orjson decode and one encode. What orjson refuses and kube-apiserver takes (invalid UTF-8,
lone surrogates) is mended and tried again, so that only bodies that need it pay for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from clusterregistry.apimachinery.codecs.decoded import (
    MAX_DEPTH,
    MAX_SHOWN,
    MAX_STRICT_ERRORS,
    MAX_VALUES,
    TOO_MANY_VALUES,
    Decoded,
    DecodeError,
    cut,
    too_deep,
)

_BACKSLASH = ord("\\")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNDECODED_BYTES = re.compile("[\udc80-\udcff]+")
# It begins with what is found fast, and matches no other escapes: a body of those would take seventy times its size.
_SURROGATES = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?P<low>\\u[dD][c-fC-F][0-9a-fA-F]{2})?|[c-fC-F][0-9a-fA-F]{2})"
)
_LOW = len(rb"\udc00")
# A text without an end goes to the end of the body: not to match it would be to try again at each quote in it.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NOT_JSON_NUMBERS = re.compile(r"-?(?:Infinity|NaN)")

# What Go says where the standard library stops with the message on the left.
_GO_CONTEXTS = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair or array element",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
    "Invalid \\uXXXX escape": "in \\u hexadecimal character escape",
}

_ESCAPED_BY_GO = tuple((character.encode(), b"\\u%04x" % ord(character)) for character in "<>&\u2028\u2029")


class _Pairs(list[tuple[str, Any]]):
    """A map as it stands in the document, repeated keys included."""


_COMPOUND = frozenset((_Pairs, list))


def decode(body: bytes, *, strict: bool = True) -> Decoded:
    """The value of a JSON document; the last of equal keys wins, and ``strict_errors`` names them if ``strict``.

    As kube-apiserver does: invalid UTF-8 and lone surrogates become U+FFFD, integers beyond 64 bits become floats,
    numbers beyond a float are an error. Raises DecodeError.
    """
    if len(body) > MAX_VALUES and count_values(body, most=MAX_VALUES) > MAX_VALUES:
        raise DecodeError(TOO_MANY_VALUES)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        body = _mended(body)
        value = _loaded(body)
    if _may_be_deep(body) and too_deep(value):
        raise DecodeError("exceeded max depth")
    if not strict or _lost_nothing(body, orjson.dumps(value)):
        return Decoded(value)
    return _with_duplicates(body, value)


def count_values(body: bytes, *, most: int) -> int:
    """How many values a document has, about, counted no further than to know that there are more than ``most``.

    What stands within texts does not count, unless it makes no difference.
    """
    if (found := _separators(body)) <= most:
        return found
    found = at = 0
    # One by one: to take all texts out of the body at once takes sixty times its size.
    for text in _STRING.finditer(body):
        found += _separators(body[at : text.start()])
        if found > most:
            return found
        at = text.end()
    return found + _separators(body[at:])


def encode(value: Any) -> bytes:
    """Compact, keys sorted: equal values give equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def encode_as_go(value: Any) -> bytes:
    """The same with what HTML trips over escaped, as Go's encoder writes it: for texts that clients compare."""
    encoded = encode(value)
    for character, escaped in _ESCAPED_BY_GO:
        encoded = encoded.replace(character, escaped)
    return encoded


def encode_pretty(value: Any) -> bytes:
    """For people: indented by two, keys sorted."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)


def _lost_nothing(body: bytes, encoded: bytes) -> bool:
    r"""Whether a body says no more than the value that was read from it, which has no key twice.

    However it is spaced, it has as many quotes then. A quote within a text counts in both: all write it as ``\"``, but
    for those who write ``\u0022``, and of those nothing is known.
    """
    if body.rstrip() == encoded:
        return True
    # One letter is found in a tenth of the time of two, and most bodies have none of the first.
    return body.count(b'"') == encoded.count(b'"') and (body.find(b"\\") < 0 or body.find(b"\\u") < 0)


def _may_be_deep(body: bytes) -> bool:
    """Whether a document has enough openings, and enough room for their ends, to be nested beyond what is allowed.

    To take them away is the fastest way to count them where they are few, and no more are counted than matter.
    """
    if len(body) <= 2 * MAX_DEPTH:
        return False
    without = body.replace(b"{", b"", MAX_DEPTH + 1).replace(b"[", b"", MAX_DEPTH + 1)
    return len(body) - len(without) > MAX_DEPTH


def _separators(body: bytes) -> int:
    """How many values a document may have: a map or list is one for itself, and the commas tell how many are in it."""
    return body.count(b",") + _openings(body)


def _openings(body: bytes) -> int:
    """How many maps and lists a document may have, be they many. Both at once take half the time of two counts."""
    return len(body) - len(body.translate(None, b"{["))


def _mended(body: bytes) -> bytes:
    """The body with what is no character replaced by U+FFFD, as Go's decoder does."""
    # As Go does, each byte that fits nowhere becomes one; Python's own "replace" makes one of several.
    text = _UNDECODED_BYTES.sub(lambda found: _REPLACEMENT * len(found[0]), body.decode(errors="surrogateescape"))
    return _SURROGATES.sub(_without_lone_surrogates, text.encode())


def _without_lone_surrogates(match: re.Match[bytes]) -> bytes:
    """A pair as it is. Behind an odd number of backslashes the first is no escape, and its partner is alone."""
    is_escape = _backslashes_before(match.string, match.start()) % 2 == 0
    if match["low"]:
        return match[0] if is_escape else match[0][:-_LOW] + rb"\ufffd"
    return rb"\ufffd" if is_escape else match[0]


def _backslashes_before(body: bytes, at: int) -> int:
    start = at
    while start and body[start - 1] == _BACKSLASH:
        start -= 1
    return at - start


def _loaded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise DecodeError(_reason(body.decode())) from None


def _reason(text: str) -> str:
    """Why the text is not JSON, in Go's words. The standard library's errors are stabler than orjson's."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _in_go_words(text, error)
    except RecursionError:
        return "exceeded max depth"
    except ValueError:
        return "json: cannot unmarshal number into Go value of type float64"
    found = _NOT_JSON_NUMBERS.search(text)
    if found:
        return f"invalid character {_shown(found[0].lstrip('-')[0])} looking for beginning of value"
    # Either way the standard library read what no float can hold, or what is nested beyond orjson's limit.
    deep = text.count("[") + text.count("{") > MAX_DEPTH
    return "exceeded max depth" if deep else "json: cannot unmarshal number into Go value of type float64"


def _in_go_words(text: str, error: json.JSONDecodeError) -> str:
    at = error.pos
    if error.msg.startswith("Unterminated string") or at >= len(text.rstrip()):
        return "unexpected end of JSON input"
    context = _GO_CONTEXTS.get(error.msg, "looking for beginning of value")
    return f"invalid character {_shown(text[at])} {context}"


def _shown(character: str) -> str:
    # Go's scanner sees bytes and shows the one it stumbled over as a character of its own.
    byte = chr(character.encode()[0])
    return "'\\''" if byte == "'" else repr(byte)


def _with_duplicates(body: bytes, value: Any) -> Decoded:
    text = body.decode()
    try:
        if not _has_duplicates(text):
            return Decoded(value)
        duplicates = _duplicate_paths(json.loads(text, object_pairs_hook=_Pairs))
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    return Decoded(value, duplicates, [f'duplicate field "{path}"' for path in duplicates])


def _has_duplicates(text: str) -> bool:
    found = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len(dict(pairs)) != len(pairs)

    json.loads(text, object_pairs_hook=look)
    return found


_Place = tuple[Any, str | int] | None
"""Where a value is: the place of what holds it, and its key or index. None is the document."""


def _duplicate_paths(document: Any) -> list[str]:
    """Paths in the order of the second occurrence, each once, as kube-apiserver reports them: the first hundred."""
    found: dict[str, None] = {}
    for place in _duplicate_places(document, None):
        found[_shown_path(place)] = None
        if len(found) == MAX_STRICT_ERRORS:
            break
    return list(found)


def _duplicate_places(value: Any, place: _Place) -> Iterator[_Place]:
    """Of each key that stands twice in one map the second, once."""
    if isinstance(value, _Pairs):
        counts: dict[str, int] = {}
        for key, child in value:
            counts[key] = count = counts.get(key, 0) + 1
            below = (place, key)
            if count == 2:  # noqa: PLR2004 - the first repetition
                yield below
            if type(child) in _COMPOUND:
                yield from _duplicate_places(child, below)
    else:
        for index, child in enumerate(value if isinstance(value, list) else ()):
            if type(child) in _COMPOUND:
                yield from _duplicate_places(child, (place, index))


def _shown_path(place: _Place) -> str:
    """``spec.a[0].b``: made only for what is told, and cut before it is joined."""
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step[: MAX_SHOWN + 1]}")
    return cut("".join(reversed(steps)).removeprefix("."))
