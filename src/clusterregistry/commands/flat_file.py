"""The flat file: the clusters of a registry as YAML that ``kubectl apply -f`` reads, too.

Equal clusters give equal bytes: documents sorted by name, keys sorted, and nothing that a server fills in. What differs
from one export to the next, the revision and the time, stands in comments before the first document, beside the
digest of all documents. An import refuses a file whose documents do not match the digest, such as a truncated one.
The digest finds accidents; it is no signature.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from clusterregistry.api.clusterregistry import GROUP, v1alpha1, v1beta1
from clusterregistry.api.clusterregistry.secret_lint import LAST_APPLIED
from clusterregistry.api.clusterregistry.v1beta1 import conversion
from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.meta.names import name_errors
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client.errors import printable
from clusterregistry.client.rest import Object, metadata
from clusterregistry.commands.import_plan import Entry
from clusterregistry.controllers.access import clusters
from clusterregistry.controllers.cluster_client import KIND

_DIGEST = re.compile(rb"^# Digest: (sha256:[0-9a-f]{64})\s*$", re.MULTILINE)
_CORRECT = "correct the file and import it again: nothing was written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a file says about itself, in comments."""

    revision: str
    """The resource version of the list."""
    taken: str
    """RFC 3339."""
    selector: str = ""


def documents(found: Iterable[Mapping[str, Any]]) -> bytes:
    """Clusters of v1beta1 as documents: equal clusters give equal bytes."""
    ordered = sorted(found, key=lambda each: str(metadata(each)["name"]))
    return "".join(f"---\n{yaml_codec.write(portable(each))}" for each in ordered).encode()


def with_header(body: bytes, header: Header, *, count: int) -> bytes:
    """The whole file."""
    lines = [
        "# Clusters, written by `clusterregistry export`. `clusterregistry import` and `kubectl apply -f` read them.",
        f"# Resource version: {header.revision}",
        f"# Taken: {header.taken}",
        *([f"# Selector: {header.selector}"] if header.selector else []),
        f"# Clusters: {count}",
        f"# Digest: {_digest(body)}",
    ]
    return "".join(f"{line}\n" for line in lines).encode() + body


def portable(cluster: Mapping[str, Any]) -> Object:
    """What another registry can take over of a cluster in v1beta1: name, labels, annotations and spec."""
    known = metadata(cluster)
    annotations = {key: value for key, value in (known.get("annotations") or {}).items() if key != LAST_APPLIED}
    described = {"name": known.get("name"), "labels": known.get("labels"), "annotations": annotations}
    whole: Object = {
        "apiVersion": f"{GROUP}/{v1beta1.VERSION}",
        "kind": KIND,
        "metadata": {key: value for key, value in described.items() if value},
    }
    if cluster.get("spec"):
        whole["spec"] = cluster["spec"]
    return whole


def read(content: bytes, source: str) -> list[Entry]:
    """The clusters of a file, for a plan. Raises OperatorError for a file that cannot be imported as a whole."""
    _check_digest(content, source)
    found = [_entry(each, source) for each in clusters.parse(content, source)]
    problems = [*_wrong_names(found), *_repeated_identities(found)]
    if problems:
        shown = "; ".join(problems[:10]) + (f"; and {len(problems) - 10} more" if len(problems) > 10 else "")  # noqa: PLR2004
        raise OperatorError(f"{source} cannot be imported: {shown}", remedy=_CORRECT)
    return found


def _check_digest(content: bytes, source: str) -> None:
    start = content.find(b"---\n")
    head, body = (content, b"") if start < 0 else (content[:start], content[start:])
    stated = _DIGEST.search(head)
    if stated is not None and stated[1].decode() != _digest(body):
        message = f"{source} is not as it was exported: its documents do not match the digest at its beginning"
        raise OperatorError(
            message, remedy="export or copy it again; if it was changed on purpose, delete the line with the digest"
        )


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _entry(document: Object, source: str) -> Entry:
    version = str(document.get("apiVersion", "")).removeprefix(f"{GROUP}/")
    if version not in (v1alpha1.VERSION, v1beta1.VERSION):
        raise OperatorError(f"{source} has a {KIND} of the unknown version {printable(version, 63)}", remedy=_CORRECT)
    if not all(isinstance(each or {}, dict) for each in _maps(document)):
        raise OperatorError(f"{source} has a {KIND} whose metadata or spec is no mapping", remedy=_CORRECT)
    whole = conversion.from_v1alpha1(document) if version == v1alpha1.VERSION else document
    return Entry(name=str(metadata(whole).get("name") or ""), source="", file=source, manifest=portable(whole))


def _maps(document: Object) -> list[Any]:
    known = metadata(document)
    return [document.get("metadata"), document.get("spec"), known.get("labels"), known.get("annotations")]


def _wrong_names(entries: Iterable[Entry]) -> Iterable[str]:
    seen: set[str] = set()
    for number, entry in enumerate(entries, start=1):
        if wrong := name_errors(entry.name):
            yield f'cluster {number} has the name "{printable(entry.name, 100)}", which {wrong[0]}'
        elif entry.name in seen:
            yield f"{entry.name} is there twice"
        seen.add(entry.name)


def _repeated_identities(entries: Iterable[Entry]) -> Iterable[str]:
    seen: dict[str, str] = {}
    for entry in entries:
        identity = ((entry.manifest or {}).get("spec") or {}).get("clusterID")
        if isinstance(identity, str) and identity:
            if identity in seen:
                yield f"{seen[identity]} and {entry.name} have the same spec.clusterID"
            seen[identity] = entry.name
