"""Reads a user's kubeconfig as kubectl does: one file, or several that $KUBECONFIG names, the first one counting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.codecs.decoded import DecodeError
from clusterregistry.apimachinery.operator_error import OperatorError

KINDS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_FILE_FIELDS = frozenset({"certificate-authority", "client-certificate", "client-key", "tokenFile"})


@dataclass(frozen=True, slots=True)
class Places:
    """The files that count, first to last, and what named them: a flag, a variable, or nothing."""

    files: tuple[Path, ...]
    named_by: str = ""

    def target(self) -> Path:
        """Where new entries go, as kubectl decides: the first file that exists, else the last one."""
        return next((file for file in self.files if file.exists()), self.files[-1])

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.files))
        return f"{listed}, from {self.named_by}" if self.named_by else listed


def places(named: str, environ: Mapping[str, str]) -> Places:
    """--kubeconfig, else $KUBECONFIG, else ~/.kube/config."""
    if named:
        return Places((Path(named).expanduser(),), "--kubeconfig")
    listed = tuple(Path(part) for part in environ.get("KUBECONFIG", "").split(":") if part)
    if listed:
        return Places(listed, "$KUBECONFIG")
    return Places((Path(environ.get("HOME", "/"), ".kube", "config"),))


@dataclass(frozen=True, slots=True)
class Access:
    """One context: the cluster and the user that it names, with paths made absolute."""

    context: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    entry: Mapping[str, Any]


@dataclass(slots=True)
class Merged:
    """All files as one. ``shown`` names them, for messages."""

    shown: str
    entries: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: {plural: {} for plural in KINDS})
    current: str = ""

    def access(self, context: str) -> Access:
        """What a context leads to; the current one for an empty name. Raises OperatorError."""
        name = context or self.current
        if not name:
            raise OperatorError(
                f"the kubeconfig has no current context; contexts are: {self._known('contexts')} (in {self.shown})",
                remedy="name one: --host-cluster-context=CONTEXT",
            )
        entry = self._entry("contexts", name)
        cluster, user = str(entry.get("cluster") or ""), str(entry.get("user") or "")
        return Access(name, self._entry("clusters", cluster), self._entry("users", user) if user else {}, entry)

    def _entry(self, plural: str, name: str) -> dict[str, Any]:
        found = self.entries[plural].get(name)
        if found is not None:
            return found
        raise OperatorError(
            f'the kubeconfig has no {KINDS[plural]} "{name}"; there are: {self._known(plural)} (in {self.shown})',
            remedy="give --host-cluster-context one of `kubectl config get-contexts`, or another --kubeconfig",
        )

    def _known(self, plural: str) -> str:
        return ", ".join(sorted(self.entries[plural])) or "none at all"


def load(where: Places) -> Merged:
    """Reads all files; those that do not exist are passed over unless none does. Raises OperatorError."""
    merged = Merged(str(where))
    held = [(file, document) for file in where.files if (document := document_of(file)) is not None]
    if not held:
        raise _missing(where)
    for file, document in held:
        _merge(merged, document, file.absolute().parent)
    return merged


def _missing(where: Places) -> OperatorError:
    remedy = "name the kubeconfig that kubectl uses for the host cluster: --kubeconfig=FILE, or $KUBECONFIG"
    if not where.named_by:
        return OperatorError(
            f"there is no file {where.files[0]}, and neither --kubeconfig nor $KUBECONFIG names another",
            remedy=f"{remedy} (with sudo, the home directory may be another one)",
        )
    if len(where.files) > 1:
        listed = ", ".join(map(str, where.files))
        return OperatorError(f"none of the files that {where.named_by} names is there: {listed}", remedy=remedy)
    return OperatorError(f"there is no file {where.files[0]}, which {where.named_by} names", remedy=remedy)


def document_of(file: Path) -> dict[str, Any] | None:
    """What a file holds; None when there is no such file. Raises OperatorError."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OperatorError(
            f"{file} cannot be read: {error.strerror}",
            remedy="make it a file that you may read, or name another: --kubeconfig=FILE",
        ) from None
    try:
        document = yaml_codec.decode(content).value
    except DecodeError as error:
        raise _damaged(file, f"it is not YAML: {' '.join(str(error).split())}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise _damaged(file, "it must be a mapping with clusters, users and contexts")
    for plural in KINDS:
        if not isinstance(document.get(plural) or [], list):
            raise _damaged(file, f"{plural} must be a list")
    return document


def _damaged(file: Path, why: str) -> OperatorError:
    return OperatorError(
        f"{file} is no kubeconfig: {why}", remedy="correct the file, or name another: --kubeconfig=FILE"
    )


def _merge(merged: Merged, document: Mapping[str, Any], directory: Path) -> None:
    for plural, singular in KINDS.items():
        for entry in document.get(plural) or []:
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                held = entry.get(singular)
                found = _absolute(held if isinstance(held, dict) else {}, directory)
                merged.entries[plural].setdefault(entry["name"], found)
    current = document.get("current-context")
    merged.current = merged.current or (current if isinstance(current, str) else "")


def _absolute(entry: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """Paths in a kubeconfig are relative to its file."""
    return {
        name: str(directory / value) if name in _FILE_FIELDS and isinstance(value, str) and value else value
        for name, value in entry.items()
    }
