"""What servers want, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clusterregistry.apiserver.pki.files import Layout
from clusterregistry.apiserver.pki.provision import CertificateRequest

NOW = 1_800_000_000.0
DAY = 86400.0


def layout_in(directory: Path) -> Layout:
    return Layout(data_dir=directory / "data", cert_dir=directory / "data" / "certs")


def wanted(directory: Path, **changes: Any) -> CertificateRequest:
    given: dict[str, Any] = {
        "layout": layout_in(directory),
        "server_url": "https://127.0.0.1:8443",
        "names": ("localhost", "127.0.0.1", "::1"),
    }
    return CertificateRequest(**(given | changes))


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
