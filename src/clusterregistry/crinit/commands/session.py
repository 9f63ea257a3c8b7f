"""One run of crinit: for whom, where, and with which means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.crinit.commands.progress import Patience, Progress
from clusterregistry.crinit.host import kubeconfig_files, kubeconfigs
from clusterregistry.crinit.host.client import Client
from clusterregistry.crinit.host.kubeconfigs import Access, Places
from clusterregistry.crinit.settings import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """``given`` are the flags as they were typed; ``environ`` is where $KUBECONFIG is looked for."""

    mode: Mode
    name: str
    namespace: str
    given: Mapping[str, str]
    places: Places
    access: Access
    client: Client
    progress: Progress
    patience: Patience

    @property
    def kubeconfig(self) -> Path:
        """The file that gets, or has, the entries of this registry."""
        return kubeconfig_files.target(self.places, self.name)

    def command(self, word: str) -> str:
        """A command line for the same registry, to be shown to people."""
        parts = ["crinit", self.mode.value, word, self.name, f"--host-cluster-context={self.access.context}"]
        where = ("cluster-registry-namespace", "kubeconfig")
        return " ".join([*parts, *(f"--{flag}={self.given[flag]}" for flag in where if flag in self.given)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asks for, before anybody was called."""

    mode: Mode
    name: str
    namespace: str
    given: Mapping[str, str]
    environ: Mapping[str, str]
    timeout: float

    def session(self, progress: Progress) -> Session:
        """Reads the kubeconfig. Raises OperatorError when there is no such context."""
        where = kubeconfigs.places(self.given.get("kubeconfig", ""), self.environ)
        access = kubeconfigs.load(where).access(self.given.get("host-cluster-context", ""))
        return Session(
            mode=self.mode,
            name=self.name,
            namespace=self.namespace,
            given=self.given,
            places=where,
            access=access,
            client=Client(access),
            progress=progress,
            patience=Patience(self.timeout),
        )
