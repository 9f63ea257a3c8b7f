"""docs/guides/systemd.md: the unit is the one in deploy/systemd, and what it starts does start."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import clusterregistry
from tests.apiserver.server.test_service_manager import message_with, next_message
from tests.docs import markdown
from tests.docs.markdown import ROOT
from tools.ports import free_port
from tools.processes import end

UNIT = ROOT / "deploy" / "systemd" / "clusterregistry.service"
GUIDE = markdown.page("docs/guides/systemd.md")
PROGRAM, STATE = "/opt/clusterregistry/bin/clusterregistry", "/var/lib/clusterregistry"
_SOURCES = Path(clusterregistry.__file__).parents[1]


def service() -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    return dict(parser["Service"])


def settings() -> dict[str, str]:
    """What the guide writes to the file that the unit names as its environment."""
    (block,) = (block for block in markdown.blocks(GUIDE) if block.body.startswith("CLUSTERREGISTRY_"))
    return dict(line.split("=", 1) for line in block.body.splitlines())


def test_the_guide_shows_the_unit_as_it_is() -> None:
    shown = [block.body for block in markdown.blocks(GUIDE) if block.body.startswith("[Unit]")]
    assert shown == [UNIT.read_text()]


def test_the_unit_fits_what_the_guide_installs() -> None:
    unit = service()
    assert unit["Type"] == "notify"
    assert unit["Environment"] == f"CLUSTERREGISTRY_DATA_DIR={STATE}"
    assert unit["EnvironmentFile"] == "-/etc/default/clusterregistry"  # "-": need not be there
    assert unit["EnvironmentFile"].removeprefix("-") in GUIDE
    assert f"--home-dir {STATE} " in GUIDE
    assert f"python3 -m venv {Path(PROGRAM).parents[1]}\n" in GUIDE


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(PROGRAM, shutil.which("true") or "/bin/true"))
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if UNIT.stem in line]
    assert ours == []
    assert done.returncode == 0


@pytest.mark.parametrize("given", [{}, settings()], ids=["without /etc/default", "with that of the guide"])
def test_what_the_unit_starts_says_that_it_is_ready(tmp_path: Path, given: dict[str, str]) -> None:
    program, *arguments = shlex.split(service()["ExecStart"])
    assert program == PROGRAM
    name, _, value = service()["Environment"].partition("=")
    environ = {name: value.replace(STATE, str(tmp_path / "state")), **given}
    environ |= {"CLUSTERREGISTRY_BIND_ADDRESS": "127.0.0.1", "CLUSTERREGISTRY_SECURE_PORT": str(free_port())}
    environ |= {"NOTIFY_SOCKET": f"{tmp_path}/notify", "WATCHDOG_USEC": "60000000", "PYTHONPATH": str(_SOURCES)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, (tmp_path / "log").open("wb") as log:
        manager.bind(environ["NOTIFY_SOCKET"])
        manager.settimeout(60)
        process = subprocess.Popen(
            [sys.executable, "-m", "clusterregistry", *arguments], env=environ, stdout=log, stderr=log, cwd="/"
        )
        try:
            host = given.get("CLUSTERREGISTRY_ADVERTISE_ADDRESS", "127.0.0.1")
            ready = message_with(manager, "READY")
            assert ready["STATUS"] == f"Serving https://{host}:{environ['CLUSTERREGISTRY_SECURE_PORT']}"
            assert next_message(manager) == {"WATCHDOG": "1"}
        finally:
            end(process)
    assert process.returncode == os.EX_OK
    assert (tmp_path / "state" / "admin.kubeconfig").exists()
