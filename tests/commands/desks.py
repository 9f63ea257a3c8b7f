"""What a person has at hand who registers clusters: a registry, a folder, kubeconfigs and the commands."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from clusterregistry.registry.main import main
from tests.apiserver.api.over_tls import OverTLS
from tests.apiserver.server.programs import Program
from tests.registry.agents.tokens import CLUSTERS


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int
    out: str
    err: str

    def items(self) -> dict[str, Any]:
        """The clusters of a command that printed JSON, by name."""
        return {each["name"]: each for each in json.loads(self.out)["items"]}

    def actions(self) -> dict[str, str]:
        return {name: each["action"] for name, each in self.items().items()}


class Desk:
    """``admin`` is the administrator's client. Clusters are deleted in the end."""

    def __init__(self, program: Program, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.program, self.directory, self._capsys = program, directory, capsys
        self.environ = {"KUBECONFIG": str(program.data / "admin.kubeconfig"), "HOME": str(directory)}
        self.admin: OverTLS = program.client()

    def run(self, *words: str) -> Outcome:
        """Runs a command in this process."""
        self._capsys.readouterr()
        status = main(words, self.environ)
        captured = self._capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    def import_kubeconfig(self, *files: Path, flags: tuple[str, ...] = ()) -> Outcome:
        return self.run("import", *(f"--from-kubeconfig={file}" for file in files), "-o", "json", *flags)

    def write(self, name: str, document: Mapping[str, Any]) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(dict(document)))
        return path

    @property
    def authority(self) -> str:
        """The certificate of an authority, as a kubeconfig has it."""
        return base64.b64encode(Path(self.program.authority).read_bytes()).decode()

    def cluster(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.get(f"{CLUSTERS}/{name}").expect(200)
        return found

    def names(self) -> list[str]:
        return sorted(each["metadata"]["name"] for each in self.admin.get(CLUSTERS).expect(200)["items"])

    def delete_clusters(self) -> None:
        for name in self.names():
            self.admin.delete(f"{CLUSTERS}/{name}")

    def __enter__(self) -> Self:
        self.delete_clusters()
        return self

    def __exit__(self, *_: object) -> None:
        self.delete_clusters()
        self.admin.close()


def kubeconfig(*contexts: Mapping[str, Any]) -> dict[str, Any]:
    """A kubeconfig with these contexts: each has a ``name``, a ``cluster`` and perhaps a ``user``."""
    users = [each for each in contexts if "user" in each]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": f"c-{each['name']}", "cluster": each["cluster"]} for each in contexts],
        "users": [{"name": f"u-{each['name']}", "user": each["user"]} for each in users],
        "contexts": [
            {
                "name": each["name"],
                "context": {
                    "cluster": f"c-{each['name']}",
                    **({"user": f"u-{each['name']}"} if "user" in each else {}),
                },
            }
            for each in contexts
        ],
    }


def context(
    name: str, server: str = "", cluster: Mapping[str, Any] | None = None, *, user: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A context whose server is named after it; ``cluster`` has more fields of its cluster."""
    entry = {"server": server or f"https://{name.lower()}.example.com:6443", **(cluster or {})}
    return {"name": name, "cluster": entry, **({} if user is None else {"user": dict(user)})}
