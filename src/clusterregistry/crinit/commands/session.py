"""One run of crinit: the registry, the host cluster, and the means to reach it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.client.kubeconfig import Context, Paths
from clusterregistry.crinit.commands.progress import Patience, Progress
from clusterregistry.crinit.host import kubeconfig_files
from clusterregistry.crinit.host.client import Client
from clusterregistry.crinit.options import CrinitOptions
from clusterregistry.crinit.settings import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A run with a host cluster. ``given`` are the flags as text."""

    mode: Mode
    name: str
    namespace: str
    given: Mapping[str, str]
    places: Paths
    access: Context
    client: Client
    progress: Progress
    patience: Patience

    @property
    def kubeconfig(self) -> Path:
        """The file that gets, or has, the entries of this registry."""
        return kubeconfig_files.target(self.places, self.name)

    def command(self, word: str) -> str:
        """A command line for the same registry, to be shown to people."""
        parts = ["crinit", self.mode.value, word, self.name, f"--host-cluster-context={self.access.name}"]
        where = ("cluster-registry-namespace", "kubeconfig")
        return " ".join([*parts, *(f"--{flag}={self.given[flag]}" for flag in where if flag in self.given)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A checked command line. ``given`` are its flags as text, ``options`` the same parsed."""

    mode: Mode
    name: str
    given: Mapping[str, str]
    options: CrinitOptions
    environ: Mapping[str, str]

    def session(self, progress: Progress) -> Session:
        """Reads the kubeconfig. Raises OperatorError when there is no such context."""
        host = self.options.host
        where = kubeconfig_files.paths(self.environ, explicit=self.given.get("kubeconfig", ""))
        access = kubeconfig_files.read_context(where, host.host_cluster_context)
        return Session(
            mode=self.mode,
            name=self.name,
            namespace=host.cluster_registry_namespace,
            given=self.given,
            places=where,
            access=access,
            client=Client(access),
            progress=progress,
            patience=Patience(self.options.run.timeout),
        )
