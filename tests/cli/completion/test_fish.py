"""The script for fish, in a real fish, which says itself what it would offer."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from clusterregistry.cli.completion import fish
from clusterregistry.cli.completion.model import Command
from clusterregistry.crinit import completion as crinit
from tests.product import program as registry_program

FISH = shutil.which("fish")
pytestmark = pytest.mark.skipif(FISH is None, reason="fish is not installed")


@pytest.mark.parametrize(
    ("program", "line", "offered"),
    [
        (registry_program, "clusterregistry sta", ["standalone"]),
        (registry_program, "clusterregistry storage c", ["check", "copy"]),
        (registry_program, "clusterregistry standalone --secu", ["--secure-port"]),
        (registry_program, "clusterregistry aggregated --token-auth", []),
        (registry_program, "clusterregistry standalone --logging-format=", ["json", "text"]),
        (registry_program, "clusterregistry standalone --authorization-mode=RBAC,We", ["RBAC,Webhook"]),
        (registry_program, "clusterregistry standalone --tls-cert-file=tl", ["tls.crt"]),
        (registry_program, "clusterregistry storage check tl", ["tls.crt"]),
        (registry_program, "clusterregistry standalone tl", []),
        (crinit.program, "crinit aggregated up", ["upgrade"]),
        (crinit.program, "crinit standalone init --api-server-service-type=No", ["NodePort"]),
    ],
)
def test_a_line_is_completed(program: Callable[[], Command], line: str, offered: list[str], tmp_path: Path) -> None:
    (tmp_path / "script").write_text(fish.script(program()))
    (tmp_path / "tls.crt").touch()
    done = subprocess.run(
        [str(FISH), "--no-config", "-c", f'source {tmp_path}/script; complete -C "{line}"'],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.stderr == ""
    found = [each.partition("\t")[0] for each in done.stdout.splitlines()]
    assert sorted(each.rpartition("=")[2] for each in found) == offered
