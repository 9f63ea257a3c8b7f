"""JSON patch (RFC 6902), with the behaviour of evanphx/json-patch v4, which kube-apiserver uses.

Where that library differs from the RFC, clients of Kubernetes rely on the library: ``test`` of an absent member
against null holds, ``replace`` of an absent member adds it, ``copy`` of one copies a null, indices below zero count
from the end, and ``add`` without a value adds a null.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

import orjson

from clusterregistry.apimachinery.codecs import MAX_STRICT_ERRORS, cut, too_deep
from clusterregistry.apimachinery.patch.errors import PatchFailed, PatchTooLarge, not_decodable

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024
"""The most bytes, as JSON, that all copies of one patch may add: kube-apiserver's own limit."""

MAX_SHIFTED = 100_000_000
"""List items that all operations of one patch may shift. Ten thousand inserts at the front of a new list shift half of
that, in about a tenth of a second."""

Operation = dict[str, Any]
_Container = dict[str, Any] | list[Any]

_FIELDS = ("op", "path", "from", "value")
_INDEX = re.compile(r"[-+]?[0-9]{1,18}")


def apply(document: Any, patch: Any) -> Any:
    """The document after all operations, or an error and no change at all.

    Raises InvalidPatch for a malformed patch, PatchTooLarge beyond MAX_OPERATIONS or MAX_SHIFTED, PatchFailed if an
    operation fails.
    """
    operations = _operations(patch)
    if len(operations) > MAX_OPERATIONS:
        raise PatchTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    if not isinstance(document, (dict, list)):
        raise PatchFailed("only an object or an array can be patched")
    application = _Application(document)
    try:
        for operation in operations:
            application.run(operation)
    except RecursionError:
        raise PatchFailed("the patched document is nested too deeply") from None
    if any(_nests(operation) for operation in operations) and too_deep(application.root):
        raise PatchFailed("the patched document is nested too deeply")
    # A moved part is shared with the former document: a copy, so that later changes do not change that one.
    return orjson.loads(_encoded(application.root)) if application.moved else application.root


def unknown_fields(patch: Any) -> list[str]:
    """The strict errors for unknown members of operations; kube-apiserver warns of them or refuses them."""
    unknown = (
        f'json patch unknown field "[{index}].{cut(name)}"'
        for index, operation in enumerate(patch if isinstance(patch, list) else [])
        if isinstance(operation, dict)
        for name in operation
        if name not in _FIELDS
    )
    return list(islice(unknown, MAX_STRICT_ERRORS))


def equal(left: Any, right: Any) -> bool:
    """Equality of JSON values: 1 and 1.0 are one number, 1 and true are not."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(child, right[key]) for key, child in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _operations(patch: Any) -> list[Operation]:
    if patch is None:  # Go decodes null into an empty list
        return []
    if not isinstance(patch, list):
        raise not_decodable(patch, "value of type []handlers.jsonPatchOp")
    for operation in patch:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            raise not_decodable(operation, "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            if not isinstance(operation.get(name), str | None):
                raise not_decodable(operation[name], f"struct field jsonPatchOp.{name} of type string")
    return [operation or {} for operation in patch]


def _nests(operation: Operation) -> bool:
    """Whether the operation could make the document deeper."""
    return operation.get("op") in ("copy", "move") or isinstance(operation.get("value"), (dict, list))


class _Application:
    """The document while operations run.

    Containers on the way to a change are copied once; ``_own`` holds those copies, which later operations change in
    place, so that many operations on a long list do not copy it again and again.
    """

    def __init__(self, document: _Container) -> None:
        self.root = document
        self._own: dict[int, _Container] = {}
        self._copied_bytes = 0
        self._shifted = 0
        self.moved = False
        """Whether an operation has moved a part of the document."""

    def run(self, operation: Operation) -> None:
        kind = operation.get("op")
        if kind not in _OPERATIONS:
            raise PatchFailed(f"Unexpected kind: {kind or 'unknown'}")
        _OPERATIONS[kind](self, operation)

    def add(self, operation: Operation) -> None:
        self._insert(_pointer(operation, "path"), operation.get("value"))

    def remove(self, operation: Operation) -> None:
        self._take(_pointer(operation, "path"))

    def replace(self, operation: Operation) -> None:
        path = _pointer(operation, "path")
        if path == "":
            self._replace_root(operation.get("value"))
            return
        container, key = self._changeable(path)
        if isinstance(container, dict):
            container[key] = operation.get("value")
        else:
            container[_existing_index(container, key)] = operation.get("value")

    def _replace_root(self, value: Any) -> None:
        if not isinstance(value, (dict, list)):
            raise PatchFailed("replace operation value must be object or array")
        self.root = value

    def move(self, operation: Operation) -> None:
        value = self._take(_pointer(operation, "from"))
        self.moved = self.moved or isinstance(value, (dict, list))
        self._insert(_pointer(operation, "path"), value)

    def copy(self, operation: Operation) -> None:
        value = self._read(_pointer(operation, "from"))
        path = _pointer(operation, "path")
        if value is not None:
            value = self._duplicate(value)
        self._insert(path, value)

    def test(self, operation: Operation) -> None:
        path = _pointer(operation, "path")
        found = self.root if path == "" else self._read(path)
        if not equal(found, operation.get("value")):
            raise PatchFailed(f"testing value {path} failed: test failed")

    def _duplicate(self, value: Any) -> Any:
        """A copy that shares nothing: later operations may change one of the two in place."""
        data = _encoded(value)
        self._copied_bytes += len(data)
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise PatchFailed(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied_bytes}, exceeding the limit {MAX_COPIED_BYTES}"
            )
        return orjson.loads(data)

    def _read(self, path: str) -> Any:
        """The value at a path; None for an absent member of an existing map, PatchFailed for any other absence."""
        container: Any = self.root
        tokens = _tokens(path)
        for token in tokens[:-1]:
            container = _child(container, token, path)
        key = tokens[-1]
        if isinstance(container, dict):
            return container.get(key)
        return _child(container, key, path)

    def _insert(self, path: str, value: Any) -> None:
        container, key = self._changeable(path)
        if isinstance(container, dict):
            container[key] = value
        else:
            index = len(container) if key == "-" else _index(key, length=len(container) + 1)
            self._shift(len(container) - index)
            container.insert(index, value)

    def _take(self, path: str) -> Any:
        container, key = self._changeable(path)
        if isinstance(container, list):
            index = _existing_index(container, key)
            self._shift(len(container) - index)
            return container.pop(index)
        if key not in container:
            raise PatchFailed(f"Unable to remove nonexistent key: {key}: missing value")
        return container.pop(key)

    def _shift(self, items: int) -> None:
        """Counts the list items after an insert or a removal."""
        self._shifted += items
        if self._shifted > MAX_SHIFTED:
            raise PatchTooLarge(
                f"The allowed maximum of list items that a JSON patch shifts is {MAX_SHIFTED}, "
                "add the items at the end or replace the list"
            )

    def _changeable(self, path: str) -> tuple[_Container, str]:
        """The container of a path's last token, safe to change in place, and that token."""
        tokens = _tokens(path)
        self.root = container = self._owned(self.root)
        for token in tokens[:-1]:
            child = self._owned(_child(container, token, path))
            if isinstance(container, dict):
                container[token] = child
            else:
                container[_existing_index(container, token)] = child
            container = child
        return container, tokens[-1]

    def _owned(self, container: Any) -> _Container:
        if id(container) in self._own:
            return self._own[id(container)]
        if not isinstance(container, (dict, list)):
            raise PatchFailed("the path leads through a value that is neither object nor array")
        copy = container.copy()
        # Held for as long as the patch runs, so that no other object can get the same id.
        self._own[id(copy)] = copy
        return copy


_OPERATIONS: dict[str | None, Callable[[_Application, Operation], None]] = {
    "add": _Application.add,
    "remove": _Application.remove,
    "replace": _Application.replace,
    "move": _Application.move,
    "copy": _Application.copy,
    "test": _Application.test,
}


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        raise PatchFailed("the patched document is nested too deeply") from None


def _pointer(operation: Operation, name: str) -> str:
    pointer = operation.get(name)
    if pointer is None:
        raise PatchFailed(f"{operation['op']} operation failed to decode {name}: missing value")
    return str(pointer)


def _tokens(path: str) -> list[str]:
    """The unescaped tokens; as in the Go library, text before the first slash is ignored."""
    tokens = path.split("/")[1:]
    if not tokens:
        raise PatchFailed(f'operation does not apply: doc is missing path: "{path}": missing value')
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens] if "~" in path else tokens


def _child(container: Any, token: str, path: str) -> Any:
    if isinstance(container, dict) and token in container:
        return container[token]
    if isinstance(container, list):
        return container[_existing_index(container, token)]
    raise PatchFailed(f'operation does not apply: doc is missing path: "{path}": missing value')


def _existing_index(container: list[Any], token: str) -> int:
    return _index(token, length=len(container))


def _index(token: str, *, length: int) -> int:
    """A token as an index below ``length``; negative ones count from the end, as kube-apiserver allows."""
    if not _INDEX.fullmatch(token):
        raise PatchFailed(f"value was not a proper array index: '{token}'")
    index = int(token)
    if not -length <= index < length:
        raise PatchFailed(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + length if index < 0 else index
