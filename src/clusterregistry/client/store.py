"""Objects by key, with indexes: what an informer keeps, and what client-go calls an Indexer.

Used on one loop. Objects that it returns are those that it keeps: callers must not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from clusterregistry.client.rest import Object, metadata

IndexFunc = Callable[[Mapping[str, Any]], Iterable[str]]
"""The values under which an object is found in an index; none at all leaves it out."""


def key_of(obj: Mapping[str, Any]) -> str:
    """``namespace/name``, or the name alone."""
    described = metadata(obj)
    name, namespace = str(described.get("name") or ""), str(described.get("namespace") or "")
    return f"{namespace}/{name}" if namespace else name


def split_key(key: str) -> tuple[str, str]:
    """Namespace and name of a key; the namespace may be empty."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def by_namespace(obj: Mapping[str, Any]) -> Iterable[str]:
    """An index function, as client-go has it."""
    return [str(metadata(obj).get("namespace") or "")]


class Store:
    """Objects by key. Indexes are declared at the start."""

    def __init__(self, indexers: Mapping[str, IndexFunc] | None = None) -> None:
        self._objects: dict[str, Object] = {}
        self._indexers = dict(indexers or {})
        self._indexes: dict[str, dict[str, set[str]]] = {name: {} for name in self._indexers}

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects.values())

    def keys(self) -> list[str]:
        return list(self._objects)

    def objects(self) -> list[Object]:
        return list(self._objects.values())

    def get(self, key: str) -> Object | None:
        return self._objects.get(key)

    def by_index(self, index: str, value: str) -> list[Object]:
        """The objects that an index has under a value. Raises KeyError for an index that was not declared."""
        return [self._objects[key] for key in sorted(self._indexes[index].get(value, ()))]

    def index_values(self, index: str) -> list[str]:
        """All values of an index."""
        return sorted(self._indexes[index])

    def put(self, key: str, obj: Object) -> Object | None:
        """Keeps an object and returns the one before. Nothing changes if an index function raises."""
        values = {name: frozenset(function(obj)) for name, function in self._indexers.items()}
        before = self.remove(key)
        self._objects[key] = obj
        for name, found in values.items():
            for value in found:
                self._indexes[name].setdefault(value, set()).add(key)
        return before

    def remove(self, key: str) -> Object | None:
        """Removes an object and returns it; None if there is none."""
        before = self._objects.pop(key, None)
        if before is None:
            return None
        for name, function in self._indexers.items():
            index = self._indexes[name]
            for value in set(function(before)):
                keys = index.get(value)
                if keys is not None:
                    keys.discard(key)
                    if not keys:
                        del index[value]
        return before
