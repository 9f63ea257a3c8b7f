"""A user's kubeconfig: reads a context, and changes the entries of crinit, the file as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client import kubeconfig
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.kubeconfig import KINDS, Context, Paths
from clusterregistry.client.kubeconfig_file import SECRET, locked, mode_of, not_writable, replace

MARK = "clusterregistry.k8s.io/crinit"
"""The extension that marks the entries of crinit; kubectl keeps it."""

Entries = Mapping[str, Mapping[str, Any]]
"""The content of crinit's entry, by ``clusters``, ``users`` and ``contexts``."""

_ANOTHER = "name another: --kubeconfig=FILE"
_ANOTHER_HOST = f"{_ANOTHER} (it must hold the host cluster's context too)"


def paths(environ: Mapping[str, str], *, explicit: str) -> Paths:
    """The kubeconfig files of the user. Raises OperatorError."""
    try:
        return kubeconfig.paths(environ, explicit=explicit)
    except ConfigError as error:
        raise OperatorError(str(error), remedy=_ANOTHER) from None


def read_context(where: Paths, name: str) -> Context:
    """The context of the host cluster; the current one without a name. Raises OperatorError."""
    try:
        merged = kubeconfig.load(where)
    except ConfigError as error:
        exists = any(file.exists() for file in where.files)
        raise OperatorError(str(error), remedy=_CORRECT if exists else _missing_remedy(where)) from None
    try:
        return merged.context(name)
    except ConfigError as error:
        remedy = "give --host-cluster-context one of `kubectl config get-contexts`, or another --kubeconfig"
        if not name and not merged.current_context:
            remedy = "name one: --host-cluster-context=CONTEXT"
        raise OperatorError(str(error), remedy=remedy) from None


_CORRECT = f"correct the file, or {_ANOTHER}"


def _missing_remedy(where: Paths) -> str:
    remedy = "name the kubeconfig that kubectl uses for the host cluster: --kubeconfig=FILE, or $KUBECONFIG"
    return remedy if where.source else f"{remedy} (with sudo, the home directory may be another one)"


def _read(file: Path) -> dict[str, Any] | None:
    """The content of a file; None if it does not exist. Raises OperatorError."""
    try:
        return kubeconfig.read_document(file)
    except ConfigError as error:
        raise OperatorError(str(error), remedy=_CORRECT) from None


def target(where: Paths, name: str) -> Path:
    """The file to change: the first that has an entry of this name, else the one for new entries."""
    for file in where.files:
        document = _read(file) or {}
        if any(_is_named(entry, name) for plural in KINDS for entry in document.get(plural) or []):
            return file
    return where.target()


def require_writable(file: Path) -> None:
    """Raises OperatorError before anything is made, unless the file can be written."""
    try:
        place = file.resolve()
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        os.close(descriptor)
        Path(temporary).unlink()
        if place.exists() and not os.access(place, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise not_writable(file, error, another=_ANOTHER_HOST) from None


def require_free(file: Path, name: str) -> None:
    """Raises OperatorError if entries that crinit did not make have this name."""
    document = _read(file) or {}
    for plural, singular in KINDS.items():
        for entry in document.get(plural) or []:
            if _is_named(entry, name) and not _is_ours(entry, singular):
                raise OperatorError(
                    f'{file} has a {singular} "{name}" that crinit did not make',
                    remedy="choose another name for the registry, or rename that entry: kubectl config rename-context",
                )


def put(file: Path, name: str, entries: Entries) -> bool:
    """Adds or replaces our entries; all others stay. Returns whether the file changed.

    A file that gets a user, and with it a key, is readable for its owner alone from then on, whatever its mode was.
    """
    with locked(file, another=_ANOTHER_HOST):
        before = _read(file)
        after = with_entries(before or {}, name, entries)
        mode = SECRET if before is None or entries.get("users") else mode_of(file)
        if after == before and mode == mode_of(file):
            return False
        replace(file, after, mode=mode, another=_ANOTHER_HOST)
        return True


def remove(file: Path, name: str) -> bool:
    """Removes our entries, and the current context if it was ours. Returns whether the file changed."""
    with locked(file, another=_ANOTHER_HOST):
        before = _read(file)
        after = without_entries(before or {}, name)
        if before is None or after == before:
            return False
        replace(file, after, mode=mode_of(file), another=_ANOTHER_HOST)
        return True


def with_entries(document: Mapping[str, Any], name: str, entries: Entries) -> dict[str, Any]:
    """Returns a kubeconfig with these entries in the place of those of the same name."""
    changed = {"apiVersion": "v1", "kind": "Config", **document}
    for plural, singular in KINDS.items():
        if plural in entries:
            changed[plural] = _with(document.get(plural) or [], {"name": name, singular: _marked(entries[plural])})
        else:
            changed.setdefault(plural, [])
    return changed


def without_entries(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    changed = dict(document)
    for plural, singular in KINDS.items():
        if document.get(plural):
            changed[plural] = [entry for entry in document[plural] if not _is_named_ours(entry, name, singular)]
    if changed != document and changed.get("current-context") == name:
        changed["current-context"] = ""
    return changed


def _with(entries: list[Any], ours: dict[str, Any]) -> list[Any]:
    """In the place of the first entry of that name, or at the end."""
    places = [number for number, entry in enumerate(entries) if _is_named(entry, ours["name"])]
    if not places:
        return [*entries, ours]
    kept = [entry for number, entry in enumerate(entries) if number == places[0] or number not in places]
    return [ours if _is_named(entry, ours["name"]) else entry for entry in kept]


def _marked(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {**entry, "extensions": [{"name": MARK, "extension": {"made-by": "crinit"}}]}


def _is_named_ours(entry: Any, name: str, singular: str) -> bool:
    return _is_named(entry, name) and _is_ours(entry, singular)


def _is_ours(entry: Mapping[str, Any], singular: str) -> bool:
    held = entry.get(singular)
    extensions = held.get("extensions") if isinstance(held, dict) else None
    return isinstance(extensions, list) and any(_is_named(extension, MARK) for extension in extensions)


def _is_named(entry: Any, name: str) -> bool:
    return isinstance(entry, dict) and entry.get("name") == name


def is_open_to_others(file: Path) -> bool:
    return file.exists() and bool(mode_of(file) & ~SECRET)
