"""How to reach an etcd."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_PREFIX = "/registry"
"""As kube-apiserver has it; a product may have another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdSettings:
    """``endpoints`` are HOST:PORT. The password is read from its file at each sign-in, so that it may change."""

    endpoints: tuple[str, ...]
    prefix: str = DEFAULT_PREFIX
    tls: bool = False
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    user: str = ""
    password_file: Path | None = None
    compaction_seconds: float = 300.0
    """How long history is kept, and how often it is shortened; 0 leaves that to others."""

    @property
    def shown(self) -> str:
        """For messages."""
        return f"etcd at {', '.join(self.endpoints)}"
