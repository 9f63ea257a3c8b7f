"""Reads kubeconfig files as kubectl does: one, or several that $KUBECONFIG names, the first one winning.

``load`` merges the files, ``Kubeconfig.context`` is one context with its cluster and its user, and
``rest_config.from_context`` makes a configuration for a client of it. ``read_document`` is one file as it stands, for
programs that change it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.codecs.decoded import DecodeError
from clusterregistry.client.errors import ConfigError, printable

KINDS = {"clusters": "cluster", "users": "user", "contexts": "context"}
"""The lists of a kubeconfig, and the field of an entry that holds what it is about."""

MAX_BYTES = 8 << 20
"""Of one file. A thousand clusters with certificates take some four megabytes."""

MAX_FILES = 64
_PATH_FIELDS = frozenset({"certificate-authority", "client-certificate", "client-key", "tokenFile"})
_SEPARATORS = "/\\"


@dataclass(frozen=True, slots=True)
class Paths:
    """The files that count, first to last, and what named them: a flag, a variable, or nothing (the default)."""

    files: tuple[Path, ...]
    source: str = ""

    def target(self) -> Path:
        """The file for new entries, as kubectl chooses it: the first that exists, else the last."""
        return next((file for file in self.files if file.exists()), self.files[-1])

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.files))
        return f"{listed}, from {self.source}" if self.source else listed


def paths(environ: Mapping[str, str], *, explicit: str = "", flag: str = "--kubeconfig") -> Paths:
    """The file that a flag names, else those of $KUBECONFIG, else ~/.kube/config. Raises ConfigError for too many."""
    if explicit:
        return Paths((Path(explicit).expanduser(),), flag)
    listed = tuple(dict.fromkeys(Path(part) for part in environ.get("KUBECONFIG", "").split(":") if part))
    if len(listed) > MAX_FILES:
        raise ConfigError(f"$KUBECONFIG names more than {MAX_FILES} files")
    if listed:
        return Paths(listed, "$KUBECONFIG")
    return Paths((Path(environ.get("HOME", "/"), ".kube", "config"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One context, the cluster and the user that it names. Paths are absolute. Wire fields keep their names."""

    name: str
    namespace: str = ""
    cluster_name: str = ""
    user_name: str = ""
    cluster: Mapping[str, Any] = field(repr=False)
    user: Mapping[str, Any] = field(default_factory=dict, repr=False)
    entry: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The context itself, as the file has it."""


@dataclass(slots=True)
class Kubeconfig:
    """All files as one. ``source`` names them in messages."""

    source: str = ""
    clusters: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    users: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    contexts: dict[str, dict[str, Any]] = field(default_factory=dict)
    current_context: str = ""

    def context(self, name: str = "") -> Context:
        """The context of this name, else the current one. Raises ConfigError."""
        chosen = name or self.current_context
        if not chosen:
            raise ConfigError(
                f"the kubeconfig has no current context; contexts are: {_known(self.contexts)} (in {self.source})"
            )
        entry = self._entry("context", self.contexts, chosen)
        cluster_name, user_name = _text(entry, "cluster"), _text(entry, "user")
        return Context(
            name=chosen,
            namespace=_text(entry, "namespace"),
            cluster_name=cluster_name,
            user_name=user_name,
            cluster=self._entry("cluster", self.clusters, cluster_name),
            user=self._entry("user", self.users, user_name) if user_name else {},
            entry=entry,
        )

    def _entry(self, kind: str, entries: Mapping[str, dict[str, Any]], name: str) -> dict[str, Any]:
        found = entries.get(name)
        if found is None:
            raise ConfigError(f'the kubeconfig has no {kind} "{name}"; there are: {_known(entries)} (in {self.source})')
        return found


def load(where: Paths) -> Kubeconfig:
    """Reads and merges the files; those that do not exist are skipped unless none does. Raises ConfigError."""
    documents = [(file, document) for file in where.files if (document := read_document(file)) is not None]
    if not documents:
        raise _missing(where)
    return _merged(str(where), documents)


def load_file(file: Path) -> Kubeconfig:
    """One file, which must exist. Raises ConfigError."""
    document = read_document(file)
    if document is None:
        raise ConfigError(f"there is no file {file}")
    return _merged(str(file), [(file, document)])


def parse_file(file: Path, content: bytes) -> Kubeconfig:
    """One file whose content was read already. Raises ConfigError."""
    return _merged(str(file), [(file, _checked(file, _decoded(file, content)))])


def _merged(source: str, documents: Sequence[tuple[Path, Mapping[str, Any]]]) -> Kubeconfig:
    merged = Kubeconfig(source)
    for file, document in documents:
        _merge(merged, document, file.absolute().parent)
    return merged


def _missing(where: Paths) -> ConfigError:
    listed = ", ".join(map(str, where.files))
    if not where.source:
        return ConfigError(f"there is no file {listed}, and neither --kubeconfig nor $KUBECONFIG names another")
    if len(where.files) > 1:
        return ConfigError(f"none of the files that {where.source} names is there: {listed}")
    return ConfigError(f"there is no file {listed}, which {where.source} names")


def read_document(file: Path) -> dict[str, Any] | None:
    """One file as it stands, its lists checked; None if it does not exist. Raises ConfigError."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{file} is larger than {MAX_BYTES} bytes")
    return _checked(file, _decoded(file, content))


def _decoded(file: Path, content: bytes) -> Any:
    try:
        return yaml_codec.decode(content, strict=False).value
    except DecodeError as error:
        raise ConfigError(f"{file} is no kubeconfig: it is not YAML: {printable(str(error))}") from None


def _checked(file: Path, document: Any) -> dict[str, Any]:
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{file} is no kubeconfig: it must be a mapping with clusters, users and contexts")
    problems = [
        f"{file} is no kubeconfig: {plural} must be a list"
        for plural in KINDS
        if not isinstance(document.get(plural) or [], list)
    ]
    if problems:
        raise ConfigError(*problems)
    return document


def _merge(merged: Kubeconfig, document: Mapping[str, Any], directory: Path) -> None:
    for plural, singular in KINDS.items():
        entries: dict[str, dict[str, Any]] = getattr(merged, plural)
        for entry in document.get(plural) or []:
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                content = entry.get(singular)
                entries.setdefault(entry["name"], _absolute(content if isinstance(content, dict) else {}, directory))
    merged.current_context = merged.current_context or _text(document, "current-context")


def _absolute(entry: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """Paths in a kubeconfig are relative to its file; so is the command of an exec plugin, unless it is a bare name."""
    resolved = {
        name: str(directory / value) if name in _PATH_FIELDS and isinstance(value, str) and value else value
        for name, value in entry.items()
    }
    plugin = entry.get("exec")
    if isinstance(plugin, dict) and any(mark in _text(plugin, "command") for mark in _SEPARATORS):
        resolved["exec"] = {**plugin, "command": str(directory / _text(plugin, "command"))}
    return resolved


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _known(names: Mapping[str, Any]) -> str:
    shown: Sequence[str] = sorted(names)[:20]
    more = f", and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more if shown else "none at all"
