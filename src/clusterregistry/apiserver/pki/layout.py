"""Where the generated files are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The generated files. What people and clients need is in the data directory, the rest in the other."""

    data_dir: Path
    cert_dir: Path

    @property
    def ca_certificate(self) -> Path:
        return self.data_dir / "ca.crt"

    @property
    def ca_key(self) -> Path:
        return self.data_dir / "ca.key"

    @property
    def server_ca(self) -> Path:
        """What clients verify the server by, when that is not ``ca_certificate``."""
        return self.data_dir / "server-ca.crt"

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "admin.kubeconfig"

    @property
    def serving_certificate(self) -> Path:
        return self.cert_dir / "serving.crt"

    @property
    def serving_key(self) -> Path:
        return self.cert_dir / "serving.key"

    @property
    def admin_certificate(self) -> Path:
        return self.cert_dir / "admin.crt"

    @property
    def admin_key(self) -> Path:
        return self.cert_dir / "admin.key"

    @property
    def record(self) -> Path:
        """What is known of the certificates, so that a start need not parse them."""
        return self.cert_dir / "record.json"

    @property
    def lock(self) -> Path:
        return self.cert_dir / ".lock"
