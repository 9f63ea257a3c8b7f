"""Clusters from the contexts of kubeconfigs: the server, its authorities, and a pointer to the user's credential.

A context that cannot be imported is refused with a reason, and does not stop the others.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from clusterregistry.api.clusterregistry import GROUP, secret_lint, v1beta1
from clusterregistry.api.clusterregistry.v1alpha1.validation import ca_bundle_error, server_address_error
from clusterregistry.apimachinery.meta.names import name_errors
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client import kubeconfig
from clusterregistry.client.errors import ConfigError, printable
from clusterregistry.client.kubeconfig import Context, Kubeconfig
from clusterregistry.client.rest import Object
from clusterregistry.commands.import_plan import Entry
from clusterregistry.commands.pointers import provider_of
from clusterregistry.controllers.cluster_client import KIND

PROXY_ANNOTATION = f"{GROUP}/proxy-url"
SERVER_NAME_ANNOTATION = f"{GROUP}/tls-server-name"
MAX_FILES = 10_000
MAX_CONTEXTS = 100_000
MAX_AUTHORITY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to import, and how the clusters are to be called and labelled."""

    contexts: tuple[str, ...] = ()
    """Empty: all."""
    name_prefix: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


class _Refused(Exception):  # noqa: N818 - not a failure of the program
    """A context cannot be imported."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


@dataclass(slots=True)
class Found:
    """The entries by the order of files and contexts, and files of a folder that are no kubeconfigs."""

    entries: list[Entry] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def find_clusters(paths: Sequence[Path], choice: Choice) -> Found:
    """The clusters of kubeconfigs and of folders with kubeconfigs. Raises OperatorError for what is not there."""
    found, seen = Found(), set[str]()
    for file, is_named in _files(paths):
        try:
            config = kubeconfig.load_file(file)
        except ConfigError as error:
            # The parser's words may show a part of the file.
            reason = printable(str(error).partition(": it is not YAML")[0], 400)
            if is_named:
                found.entries.append(_unread(file, reason))
            else:
                found.skipped.append(reason)
            continue
        if not is_named and not config.contexts:
            found.skipped.append(f"{file} has no contexts")
        seen.update(config.contexts)
        found.entries += _entries(config, file, choice)
        if len(found.entries) > MAX_CONTEXTS:
            raise OperatorError(f"there are more than {MAX_CONTEXTS} contexts", remedy="import fewer files at a time")
    _check_chosen(choice.contexts, seen)
    return Found(_without_collisions(found.entries), found.skipped)


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Each file, and whether it was named itself rather than its folder. Files that begin with a dot are left out."""
    count = 0
    for path in paths:
        for file in _in_folder(path) if path.is_dir() else [path]:
            if not file.exists():
                raise OperatorError(f"there is no file {file}", remedy="correct --from-kubeconfig")
            count += 1
            if count > MAX_FILES:
                raise OperatorError(f"there are more than {MAX_FILES} files", remedy="import fewer files at a time")
            yield file, file is path


def _in_folder(path: Path) -> list[Path]:
    try:
        return sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
    except OSError as error:
        raise OperatorError(
            f"{path} cannot be read: {error.strerror or error}", remedy="make the folder readable"
        ) from None


def _unread(file: Path, reason: str) -> Entry:
    entry = Entry(name="", source="", file=str(file))
    entry.refuse(reason, remedy="make the file a readable kubeconfig, or leave it out")
    return entry


def _check_chosen(wanted: Collection[str], seen: Collection[str]) -> None:
    missing = [name for name in wanted if name not in seen]
    if missing:
        there = ", ".join(sorted(seen)[:20]) or "none"
        raise OperatorError(
            f"there is no context {', '.join(missing)}", remedy=f"correct --context; contexts are: {printable(there)}"
        )


def _entries(config: Kubeconfig, file: Path, choice: Choice) -> Iterator[Entry]:
    for name in config.contexts:
        if choice.contexts and name not in choice.contexts:
            continue
        entry = Entry(name=cluster_name(choice.name_prefix + name), source=name, file=str(file))
        try:
            _fill(entry, config.context(name), choice)
        except ConfigError as error:
            remedy = f"correct the context in {file}, or leave it out: name the others with --context"
            entry.refuse(printable(str(error), 400), remedy=remedy)
        except _Refused as error:
            entry.refuse(str(error), remedy=error.remedy)
        yield entry


def cluster_name(text: str) -> str:
    """A name for a cluster made of any text: lower case letters, digits, dashes and dots. May be empty or too long."""
    parts = re.sub(r"[^a-z0-9.]+", "-", text.lower()).split(".")
    return ".".join(filter(None, (part.strip("-") for part in parts)))


def _fill(entry: Entry, context: Context, choice: Choice) -> None:
    if name_errors(entry.name):
        remedy = "rename the context: `kubectl config rename-context`"
        raise _Refused("no name of 1 to 253 letters and digits can be made of the context's name", remedy)
    endpoints: Object = {"serverEndpoints": [{"serverAddress": _server(context)}]}
    if authorities := _authorities(context):
        endpoints["caBundle"] = base64.b64encode(authorities).decode()
    spec: Object = {"kubernetesApiEndpoints": endpoints}
    provider, notes = provider_of(context, Path(entry.file).name)
    if provider is not None:
        spec["authInfo"] = {"providers": [provider]}
    described: Object = {"name": entry.name}
    if choice.labels:
        described["labels"] = dict(choice.labels)
    if annotations := _annotations(context):
        described["annotations"] = annotations
    _check_harmless(described, spec)
    entry.notes += [*notes, *_notes(context, annotations)]
    version = f"{GROUP}/{v1beta1.VERSION}"
    entry.manifest = {"apiVersion": version, "kind": KIND, "metadata": described, "spec": spec}


def _text(context: Context, name: str) -> str:
    """A field of the context's cluster; empty if it is absent."""
    value = context.cluster.get(name)
    if value is None or (isinstance(value, str) and (value.isprintable() or name == "certificate-authority-data")):
        return value or ""
    raise _Refused(f'{name} of its cluster "{context.cluster_name}" is not a line of text', "correct it there")


def _server(context: Context) -> str:
    server = _text(context, "server")
    if not server:
        raise _Refused(f'its cluster "{context.cluster_name}" has no server', "set it: `kubectl config set-cluster`")
    wrong = server_address_error(server) if "://" in server else "must be an http or https URL"
    if wrong:
        raise _Refused(f"the server of its cluster {wrong}", "correct the server: `kubectl config set-cluster`")
    return server


def _authorities(context: Context) -> bytes:
    """The authorities of the cluster as PEM; empty for those of the system."""
    data, file = _text(context, "certificate-authority-data"), _text(context, "certificate-authority")
    if data:
        try:
            content = base64.b64decode(data, validate=True)
        except ValueError:
            raise _Refused("certificate-authority-data is not base64", _CORRECT_AUTHORITY) from None
    elif file:
        content = _file_content(Path(file))
    else:
        return b""
    if wrong := ca_bundle_error(base64.b64encode(content).decode()):
        raise _Refused(f"its certificate authority {wrong}", _CORRECT_AUTHORITY)
    if b"-----BEGIN CERTIFICATE" not in content:
        raise _Refused("its certificate authority holds no certificate in PEM", _CORRECT_AUTHORITY)
    return content


_CORRECT_AUTHORITY = "put the certificates of the authority there, in PEM: `kubectl config set-cluster`"


def _file_content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_AUTHORITY_BYTES + 1)
    except OSError as error:
        reason = f"its certificate authority {file} cannot be read: {error.strerror or error}"
        raise _Refused(reason, "make the file readable, or correct its name") from None
    if len(content) > MAX_AUTHORITY_BYTES:
        raise _Refused(f"its certificate authority {file} has more than {MAX_AUTHORITY_BYTES} bytes", "shorten it")
    return content


def _annotations(context: Context) -> dict[str, str]:
    """What the API has no field for."""
    annotations = {}
    proxy, server_name = _text(context, "proxy-url"), _text(context, "tls-server-name")
    if proxy:
        if "@" in proxy:
            raise _Refused("its proxy-url holds a user or a password", "use a proxy-url without them")
        annotations[PROXY_ANNOTATION] = proxy
    if server_name:
        annotations[SERVER_NAME_ANNOTATION] = server_name
    return annotations


def _check_harmless(described: Mapping[str, Any], spec: Object) -> None:
    found = secret_lint.inspect(spec=spec, labels=described.get("labels"), annotations=described.get("annotations"))
    if found:
        path, what = found[0]
        raise _Refused(f"{path} looks like {what}, which a registry must not hold", "take the credential out of it")


def _notes(context: Context, annotations: Collection[str]) -> Iterator[str]:
    if annotations:
        yield f"kept as {' and '.join(annotations)}: the controller does not use it"
    if context.cluster.get("insecure-skip-tls-verify") is True:
        yield "insecure-skip-tls-verify is not imported: the cluster's certificate will be verified"
    server = str(context.cluster["server"])
    if server.startswith("http://"):
        yield "the server is without TLS: the controller will not use it"
    if _is_loopback(urlsplit(server).hostname or ""):
        yield "the server can only be reached from this machine"


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# Contexts that give the same name


def _without_collisions(entries: Sequence[Entry]) -> list[Entry]:
    """Equal clusters become one entry; different ones of one name are all refused."""
    by_name: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.action is None:
            by_name.setdefault(entry.name, []).append(entry)
    repeated: set[int] = set()
    for name, same in by_name.items():
        first, *others = same
        if all(each.manifest == first.manifest for each in others):
            repeated.update(map(id, others))
            first.notes += [f'the same as context "{printable(each.source, 200)}" of {each.file}' for each in others]
            continue
        listed = ", ".join(f'"{each.source}" of {each.file}' for each in same)
        for each in same:
            each.refuse(
                f"different contexts would have the name {name}: {printable(listed, 400)}",
                remedy="import them one after the other, with --context or other files and --name-prefix",
            )
    return [each for each in entries if id(each) not in repeated]
