"""Rules, clusters, credentials and clocks for the tests of access rules."""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from clusterregistry.controllers.access import AccessRules
from clusterregistry.controllers.access.cluster_credential import Clocks
from clusterregistry.controllers.access.configuration import API_VERSION, KIND
from clusterregistry.controllers.access.exec_runner import ExecLimits
from clusterregistry.controllers.access.rules import AccessParts
from clusterregistry.controllers.observer.credentials import AccessError
from clusterregistry.controllers.observer.observation import Failure

EXEC_VERSION = "client.authentication.k8s.io/v1"
PATIENCE = 60.0
Object = dict[str, Any]


class FakeClocks:
    """Both clocks, moved by hand."""

    def __init__(self) -> None:
        self.now, self.start = time.time(), time.time()

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds

    @property
    def clocks(self) -> Clocks:
        return Clocks(unix=lambda: self.now, monotonic=lambda: self.now - self.start + 1000.0)


def document(*rules: Object) -> Object:
    return {"apiVersion": API_VERSION, "kind": KIND, "rules": list(rules)}


def write_rules(path: Path, *rules: Object) -> Path:
    """Replaces the file as programs do it: by renaming."""
    beside = path.with_suffix(".new")
    beside.write_text(yaml.safe_dump(document(*rules)))
    return beside.rename(path)


def rule(use: Object, **match: Any) -> Object:
    return {"match": match, "use": use}


def access_rules(
    folder: Path,
    *rules: Object,
    clocks: FakeClocks | None = None,
    environ: Mapping[str, str] | None = None,
    limits: ExecLimits | None = None,
    **parts: Any,
) -> AccessRules:
    chosen = AccessParts(
        environ=environ if environ is not None else {"PATH": "/usr/bin:/bin"},
        clocks=(clocks or FakeClocks()).clocks,
        exec_limits=limits or ExecLimits(),
        **parts,
    )
    return AccessRules(write_rules(folder / "access.yaml", *rules), chosen)


def cluster(
    name: str = "one",
    *,
    uid: str = "u1",
    config: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A cluster in v1beta1 with a provider of the type ``corp``, if it has a config."""
    providers = [{"name": "p", "type": "corp", "config": dict(config)}] if config is not None else []
    return {
        "apiVersion": "clusterregistry.k8s.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": name, "uid": uid, "labels": dict(labels or {})},
        "spec": {"authInfo": {"providers": providers}, **spec},
    }


async def token_of(access: AccessRules, of: Object) -> str:
    found = await access.credential(of)
    return found.credential.authorization.removeprefix("Bearer ")


async def failure_of(access: AccessRules, of: Object) -> Failure:
    try:
        await access.credential(of)
    except AccessError as error:
        return error.failure
    raise AssertionError("there is a credential")


def jwt_until(end: float, subject: str = "one") -> str:
    """A token that says when it ends; nobody verifies it here."""
    parts = ({"alg": "none"}, {"exp": int(end), "sub": subject})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*encoded, "c2lnbmF0dXJl"))


class Plugin:
    """A program that counts its runs, keeps its arguments, and prints an ExecCredential with what a file holds."""

    def __init__(self, folder: Path, *, before: str = "") -> None:
        folder.mkdir(exist_ok=True)
        self.runs, self.status, self.arguments = folder / "runs", folder / "status", folder / "arguments"
        self.program, self.environment = folder / "plugin", folder / "environment"
        self.runs.touch()
        self.write(before)

    def write(self, before: str) -> None:
        """``before`` is Python that runs first."""
        self.program.write_text(
            f"#!{sys.executable} -S\n"
            "import json, os, subprocess, sys, time\n"
            f"open({str(self.runs)!r}, 'a').write('x')\n"
            f"open({str(self.arguments)!r}, 'w').write(json.dumps(sys.argv[1:]))\n"
            f"open({str(self.environment)!r}, 'w').write(json.dumps(dict(os.environ)))\n"
            f"{before}\n"
            f"status = json.loads(open({str(self.status)!r}).read())\n"
            f"print(json.dumps({{'apiVersion': '{EXEC_VERSION}', 'kind': 'ExecCredential', 'status': status}}))\n"
        )
        self.program.chmod(0o755)

    def prints(self, **status: Any) -> None:
        self.status.write_text(json.dumps(status))

    @property
    def count(self) -> int:
        return len(self.runs.read_text())

    @property
    def seen_arguments(self) -> list[str]:
        return list(json.loads(self.arguments.read_text()))

    def use(self, *args: str, **more: Any) -> Object:
        return {"exec": {"command": str(self.program), "args": list(args), "timeout": "50s", **more}}


def kubeconfig(user: Object, *, server: str = "https://192.0.2.1", others: Sequence[str] = ()) -> str:
    users = [{"name": "me", "user": user}, *({"name": each, "user": {"token": "not-this"}} for each in others)]
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": users,
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "me"}}],
            "current-context": "c",
        }
    )
