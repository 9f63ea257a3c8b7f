"""What is known of the certificates on disk, kept beside them so that a start need not parse them.

A record is only a memory: it counts while the digests of the files agree, and a missing or damaged one is made anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from clusterregistry.apiserver.pki import files
from clusterregistry.apiserver.pki.errors import CertificateError


@dataclass(frozen=True, slots=True)
class Facts:
    """What a certificate is good for, as long as its files have this digest. Times are seconds since 1970."""

    digest: str
    not_after: float
    names: tuple[str, ...] = ()
    further: tuple[str, ...] = ()
    """Those of the names that the operator asked for."""


@dataclass(frozen=True, slots=True)
class Record:
    """Facts by name (``ca``, ``serving``, ``admin``), and the digest of the kubeconfig as we wrote it."""

    facts: Mapping[str, Facts] = field(default_factory=dict)
    kubeconfig: str = ""


def load(path: Path) -> Record:
    """The record, or an empty one. Never raises for what is in the file."""
    try:
        document = json.loads(files.read(path) or b"{}")
        return Record({name: _facts(each) for name, each in document["facts"].items()}, str(document["kubeconfig"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, CertificateError):
        return Record()


def _facts(document: Mapping[str, Any]) -> Facts:
    names = tuple(str(name) for name in document["names"])
    further = tuple(str(name) for name in document.get("further", ()))  # older records know of none
    return Facts(str(document["digest"]), float(document["not_after"]), names, further)


def save(path: Path, record: Record) -> None:
    document = {"facts": {name: asdict(each) for name, each in record.facts.items()}, "kubeconfig": record.kubeconfig}
    files.write(path, json.dumps(document, indent=1).encode() + b"\n", mode=files.SECRET)
