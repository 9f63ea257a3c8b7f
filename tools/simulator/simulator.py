"""Many simulated members in one process, as an asynchronous context."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import yaml

from tools.ports import free_port
from tools.simulator.member import PROVIDER, SimulatedMember

MAX_MEMBERS = 60_000
"""Addresses 127.1.0.1 to 127.1.239.250."""


class Simulator:
    """Members on one port, each on an address of its own. Certificates are made when they are needed, and kept."""

    def __init__(
        self, count: int = 1, *, port: int = 0, directory: Path | None = None, client_authorities: bytes = b""
    ) -> None:
        """``directory`` keeps certificates, else the cache folder does; ``client_authorities`` sign for all members."""
        if not 0 < count <= MAX_MEMBERS:
            raise ValueError(f"the number of members must be between 1 and {MAX_MEMBERS}")
        self.port = port or free_port()
        self.members: Sequence[SimulatedMember] = [
            SimulatedMember(number, port=self.port, directory=directory, client_authorities=client_authorities)
            for number in range(count)
        ]

    def __getitem__(self, index: int) -> SimulatedMember:
        return self.members[index]

    def member(self, name: str) -> SimulatedMember:
        """Raises KeyError."""
        for member in self.members:
            if member.name == name:
                return member
        raise KeyError(name)

    async def __aenter__(self) -> Self:
        raise_file_limit()
        try:
            for member in self.members:
                member.listen()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        for member in self.members:
            await member.close()

    def write_registry(self, directory: Path) -> None:
        """Writes what a registry and a controller need: clusters.yaml, access.yaml and a token for each member."""
        tokens = directory / "tokens"
        tokens.mkdir(parents=True, exist_ok=True, mode=0o700)
        for member in self.members:
            file = tokens / f"{member.name}.token"
            file.write_text(member.token)
            file.chmod(0o600)
        rules = [{"match": {"provider": PROVIDER}, "use": {"file": {"directory": str(tokens.absolute())}}}]
        access = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "AccessConfiguration", "rules": rules}
        comment = "# Simulated member clusters of tools/simulator: nothing of this is real.\n"
        (directory / "access.yaml").write_text(comment + yaml.safe_dump(access, sort_keys=False))
        clusters = yaml.dump_all(
            (member.cluster() for member in self.members), Dumper=yaml.CSafeDumper, sort_keys=False, explicit_start=True
        )
        (directory / "clusters.yaml").write_text(comment + clusters)


def raise_file_limit() -> None:
    """Each member takes a listener and a connection."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
