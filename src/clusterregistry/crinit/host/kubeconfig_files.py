"""Changes a user's kubeconfig: whole or not at all, and nothing in it but our own entries."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.crinit.host.kubeconfigs import KINDS, Places, document_of

_SECRET = 0o600
MARK = "clusterregistry.k8s.io/crinit"
"""The extension that tells our entries from those of others; kubectl keeps it."""

Entries = Mapping[str, Mapping[str, Any]]
"""By ``clusters``, ``users``, ``contexts``: what our entry of that kind holds."""


def target(where: Places, name: str) -> Path:
    """The file to change: the first that has an entry of this name, else the one for new entries."""
    for file in where.files:
        document = document_of(file) or {}
        if any(_is_named(entry, name) for plural in KINDS for entry in document.get(plural) or []):
            return file
    return where.target()


def require_writable(file: Path) -> None:
    """Raises OperatorError while there is still nothing to regret."""
    try:
        place = _resolved(file)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        os.close(descriptor)
        Path(temporary).unlink()
        if place.exists() and not os.access(place, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise _not_writable(file, error) from None


def require_free(file: Path, name: str) -> None:
    """Raises OperatorError when somebody else's entries have the name that ours would get."""
    document = document_of(file) or {}
    for plural, singular in KINDS.items():
        for entry in document.get(plural) or []:
            if _is_named(entry, name) and not _is_ours(entry, singular):
                raise OperatorError(
                    f'{file} has a {singular} "{name}" that crinit did not make',
                    remedy="choose another name for the registry, or rename that entry: kubectl config rename-context",
                )


def put(file: Path, name: str, entries: Entries) -> bool:
    """Adds or replaces our entries; all others stay. Answers whether anything changed.

    A file that gets a user, and with it a key, is for its owner alone from then on, whatever its mode was before.
    """
    with _locked(file):
        before = document_of(file)
        after = with_entries(before or {}, name, entries)
        mode = _SECRET if before is None or entries.get("users") else _mode(file)
        if after == before and mode == _mode(file):
            return False
        _replace(file, after, mode=mode)
        return True


def remove(file: Path, name: str) -> bool:
    """Removes our entries, and the current context when it was ours. Answers whether there was anything."""
    with _locked(file):
        before = document_of(file)
        after = without_entries(before or {}, name)
        if before is None or after == before:
            return False
        _replace(file, after, mode=_mode(file))
        return True


def with_entries(document: Mapping[str, Any], name: str, entries: Entries) -> dict[str, Any]:
    """A kubeconfig with these entries in the place of those of the same name."""
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


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """The same lock that kubectl takes: a file beside it that only one can make."""
    place = _resolved(file)
    lock = place.with_name(place.name + ".lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0)
    except FileExistsError:
        raise OperatorError(
            f"another program is changing {file}: {lock} is there",
            remedy="run the same command again; if no other program runs, remove that file first",
        ) from None
    except OSError as error:
        raise _not_writable(file, error) from None
    try:
        os.close(descriptor)
        yield
    finally:
        lock.unlink(missing_ok=True)


def _replace(file: Path, document: Mapping[str, Any], *, mode: int) -> None:
    """A rename: whoever reads the file sees the old content or the new. A link stays a link, the owner the owner."""
    place = _resolved(file)
    try:
        descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(yaml_codec.encode(dict(document)))
                _own(descriptor, place)
                os.fchmod(descriptor, mode)
                opened.flush()
                os.fsync(descriptor)
            Path(temporary).replace(place)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _not_writable(file, error) from None


def _own(descriptor: int, place: Path) -> None:
    """The owner of the file before: one that root changes with sudo must stay readable to the user it belongs to."""
    if place.exists():
        before = place.stat()
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)


def is_open_to_others(file: Path) -> bool:
    return file.exists() and bool(_mode(file) & ~_SECRET)


def _mode(file: Path) -> int:
    return stat.S_IMODE(_resolved(file).stat().st_mode)


def _resolved(file: Path) -> Path:
    return file.resolve()


def _not_writable(file: Path, error: OSError) -> OperatorError:
    return OperatorError(
        f"the kubeconfig {file} cannot be written: {error.strerror}",
        remedy="make it writable, or name another: --kubeconfig=FILE (it must hold the host cluster's context too)",
    )
