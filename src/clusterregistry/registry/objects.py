"""Objects as the store holds them, and what is derived from them.

A ``KeyValue`` is one object at one revision. What selectors look at is derived from it once and kept
in its ``memo``; the whole object is decoded only where somebody needs it and is the caller's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from clusterregistry.storage.interface import KeyValue
from clusterregistry.storage.revisions import to_served

Object = dict[str, Any]
_NO_LABELS: Mapping[str, str] = {}


class Memo:
    """What is kept with an object in the cache. ``row`` belongs to the tables in ``handlers``."""

    __slots__ = ("labels", "row")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self.row: Any = None


def served(kv: KeyValue) -> bytes:
    """The object's JSON with its resource version."""
    return to_served(kv.value, kv.revision)


def decoded(kv: KeyValue) -> Object:
    """The object as a fresh dict."""
    obj: Object = orjson.loads(to_served(kv.value, kv.revision))
    return obj


def memo_of(kv: KeyValue) -> Memo:
    memo: Memo | None = kv.memo
    if memo is None:
        labels = orjson.loads(kv.value)["metadata"].get("labels", _NO_LABELS)
        memo = kv.memo = Memo(labels)
    return memo


def labels_of(kv: KeyValue) -> Mapping[str, str]:
    return memo_of(kv).labels


def name_of(kv: KeyValue) -> str:
    return name_of_key(kv.key)


def name_of_key(key: str) -> str:
    return key.rpartition("/")[2]


def at_revision(kv: KeyValue, revision: int) -> KeyValue:
    """The same object under another revision: what a DELETED event carries."""
    return KeyValue(kv.key, kv.value, revision, kv.memo)
