"""The script for zsh, at the prompt of a real zsh."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from clusterregistry.cli.completion import zsh
from clusterregistry.cli.completion.model import Command
from clusterregistry.crinit import completion as crinit
from tests.cli.completion.terminals import Terminal
from tests.product import program as registry_program

ZSH = shutil.which("zsh")
pytestmark = pytest.mark.skipif(ZSH is None, reason="zsh is not installed")


@pytest.mark.parametrize("program", [registry_program, crinit.program])
def test_zsh_can_read_the_script(program: Callable[[], Command], tmp_path: Path) -> None:
    (tmp_path / "script").write_text(zsh.script(program()))
    done = subprocess.run([str(ZSH), "-n", tmp_path / "script"], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_commands_flags_values_and_files_are_completed(tmp_path: Path) -> None:
    (tmp_path / "registry.script").write_text(zsh.script(registry_program()))
    (tmp_path / "crinit.script").write_text(zsh.script(crinit.program()))
    (tmp_path / "registry-backup.db").touch()
    with Terminal(str(ZSH), "-f", "-i") as terminal:
        terminal.type("PS1='$ '; autoload -U compinit; compinit -D -u; setopt no_beep\n")
        terminal.type(f"for file in {tmp_path}/*.script; do source $file; done; echo sour''ced\n")
        terminal.shows("sourced\n")
        for typed, shown in (
            ("clusterregistry stan\t--secu\t1", "clusterregistry standalone --secure-port=1"),
            ("clusterregistry stor\tback\t", "clusterregistry storage backup"),
            ("clusterregistry standalone --logging-format=j\t", "--logging-format=json"),
            ("clusterregistry standalone --authorization-mode=RBAC,We\t", "--authorization-mode=RBAC,Webhook"),
            ("clusterregistry standalone --anonymous-auth=f\t", "--anonymous-auth=false"),
            (f"clusterregistry storage check {tmp_path}/registry-b\t", f"{tmp_path}/registry-backup.db"),
            (
                "crinit standalone ini\tfleet --api-server-service-type=No\t",
                "init fleet --api-server-service-type=NodePort",
            ),
        ):
            terminal.type(typed)
            terminal.shows(shown)
            terminal.type("\x15")  # empties the line
