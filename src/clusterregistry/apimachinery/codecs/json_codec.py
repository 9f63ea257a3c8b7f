"""JSON as sigs.k8s.io/json reads it: the last of two equal keys wins, and a duplicate key is a strict error.

The fast path costs one orjson decode and one encode. Invalid UTF-8 and lone surrogates, which orjson refuses and
kube-apiserver accepts, are replaced before a second try, so that only such bodies pay for it.
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
from clusterregistry.apimachinery.codecs.json_syntax import TOO_DEEP, syntax_error

_BACKSLASH = ord("\\")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNDECODED_BYTES = re.compile("[\udc80-\udcff]+")
# It begins with a fast prefix, and matches no other escapes: a body of those would take seventy times its size.
_SURROGATES = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?P<low>\\u[dD][c-fC-F][0-9a-fA-F]{2})?|[c-fC-F][0-9a-fA-F]{2})"
)
_LOW = len(rb"\udc00")
# An unterminated text matches to the end of the body: else the search would try again at each quote in it.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_ESCAPED_BY_GO = tuple((character.encode(), b"\\u%04x" % ord(character)) for character in "<>&\u2028\u2029")


class _Pairs(list[tuple[str, Any]]):
    """A map of the document with its duplicate keys."""


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
        sent, body = body, _repaired(body)
        value = _loaded(body, sent)
    if _may_be_deep(body) and too_deep(value):
        raise DecodeError(TOO_DEEP)
    if not strict or _lost_nothing(body, orjson.dumps(value)):
        return Decoded(value)
    return _with_duplicates(body, value)


def count_values(body: bytes, *, most: int) -> int:
    """The approximate number of values in a document; counting stops once there are more than ``most``.

    Texts count only where that makes no difference to the result.
    """
    if (found := _separators(body)) <= most:
        return found
    found = at = 0
    # One by one: a list of all texts takes sixty times the size of the body.
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
    """Like ``encode``, with HTML's special characters escaped as Go's encoder does: for texts that clients compare."""
    encoded = encode(value)
    for character, escaped in _ESCAPED_BY_GO:
        encoded = encoded.replace(character, escaped)
    return encoded


def encode_pretty(value: Any) -> bytes:
    """For people: indented by two, keys sorted."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)


def _lost_nothing(body: bytes, encoded: bytes) -> bool:
    r"""Whether a body has no duplicate keys, known from the body and its decoded and encoded value.

    Without duplicates both have the same number of quotes, whatever the spacing. A quote within a text counts in both,
    unless the client escapes it as ``\u0022``: then the result is False.
    """
    if body.rstrip() == encoded:
        return True
    # A search for one byte takes a tenth of the time of two, and most bodies have no backslash.
    return body.count(b'"') == encoded.count(b'"') and (body.find(b"\\") < 0 or body.find(b"\\u") < 0)


def _may_be_deep(body: bytes) -> bool:
    """Whether a document has enough brackets to be nested beyond MAX_DEPTH.

    Removing brackets is the fastest way to count a few, and no more than necessary are counted.
    """
    if len(body) <= 2 * MAX_DEPTH:
        return False
    without = body.replace(b"{", b"", MAX_DEPTH + 1).replace(b"[", b"", MAX_DEPTH + 1)
    return len(body) - len(without) > MAX_DEPTH


def _separators(body: bytes) -> int:
    """The most values that a document can have: one for each map, list and comma."""
    return body.count(b",") + _openings(body)


def _openings(body: bytes) -> int:
    """The most maps and lists that a document can have. One translate takes half the time of two counts."""
    return len(body) - len(body.translate(None, b"{["))


def _repaired(body: bytes) -> bytes:
    """The body with invalid bytes and lone surrogates replaced by U+FFFD, as Go's decoder does."""
    # As in Go, one for each invalid byte; Python's own "replace" makes one of several.
    text = _UNDECODED_BYTES.sub(lambda found: _REPLACEMENT * len(found[0]), body.decode(errors="surrogateescape"))
    return _SURROGATES.sub(_without_lone_surrogates, text.encode())


def _without_lone_surrogates(match: re.Match[bytes]) -> bytes:
    """Keeps a pair. After an odd number of backslashes the first one is not an escape, and the second is alone."""
    is_escape = _backslashes_before(match.string, match.start()) % 2 == 0
    if match["low"]:
        return match[0] if is_escape else match[0][:-_LOW] + rb"\ufffd"
    return rb"\ufffd" if is_escape else match[0]


def _backslashes_before(body: bytes, at: int) -> int:
    start = at
    while start and body[start - 1] == _BACKSLASH:
        start -= 1
    return at - start


def _loaded(repaired: bytes, body: bytes) -> Any:
    """The value of a repaired body. Raises DecodeError in Go's words for the body as it was sent."""
    try:
        return orjson.loads(repaired)
    except orjson.JSONDecodeError:
        raise DecodeError(syntax_error(body) or _excess(body)) from None


def _excess(body: bytes) -> str:
    """What is too much in a document that is JSON, and that orjson refuses: its nesting, or a number beyond a float."""
    deep = body.count(b"[") + body.count(b"{") > MAX_DEPTH
    return TOO_DEEP if deep else "json: cannot unmarshal number into Go value of type float64"


def _with_duplicates(body: bytes, value: Any) -> Decoded:
    text = body.decode()
    try:
        if not _has_duplicates(text):
            return Decoded(value)
        duplicates = _duplicate_paths(json.loads(text, object_pairs_hook=_Pairs))
    except RecursionError:
        raise DecodeError(TOO_DEEP) from None
    return Decoded(value, duplicates, [f'duplicate field "{path}"' for path in duplicates])


def _has_duplicates(text: str) -> bool:
    found = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len(dict(pairs)) != len(pairs)

    json.loads(text, object_pairs_hook=look)
    return found


_Place = tuple[Any, str | int] | None
"""The place of a value: the place of its parent, and its key or index. None is the document."""


def _duplicate_paths(document: Any) -> list[str]:
    """Paths in the order of the second occurrence, each once, as kube-apiserver reports them: the first hundred."""
    found: dict[str, None] = {}
    for place in _duplicate_places(document, None):
        found[_shown_path(place)] = None
        if len(found) == MAX_STRICT_ERRORS:
            break
    return list(found)


def _duplicate_places(value: Any, place: _Place) -> Iterator[_Place]:
    """The second occurrence of each duplicate key."""
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
    """``spec.a[0].b``: made only for reported fields, and cut before it is joined."""
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step[: MAX_SHOWN + 1]}")
    return cut("".join(reversed(steps)).removeprefix("."))
