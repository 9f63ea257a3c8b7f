"""What a newcomer does: a fresh clone, an empty home, empty caches, and the README's first command."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.setup.test_environment import pins
from tools import programs
from tools.environment import LOCKS, ROOT
from tools.ports import free_port

# How package indexes are reached is the machine's business; all else is left out.
_KEPT = re.compile(r"(PIP|UV)_|SSL_CERT|.*_proxy$", re.IGNORECASE)
_PLAIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files of the project as they are, and nothing that was built or installed."""
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        check=True, cwd=ROOT, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    wanted = [name for name in files if (ROOT / name).is_file() and not name.startswith(("tests/", "benchmarks/"))]
    for name in wanted:
        (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "clone" / name)
    return tmp_path / "clone"


@pytest.fixture
def newcomer(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    # `make` finds /usr/bin/python3 by itself, unless that is too old: then the one that runs the tests does.
    path = os.pathsep.join([_PLAIN_PATH, str(Path(sys.executable).resolve().parent)])
    kept = {name: value for name, value in os.environ.items() if _KEPT.match(name) and "CACHE" not in name}
    return {**kept, "PATH": path, "HOME": str(tmp_path / "home")}


@pytest.fixture
def started(clone: Path, newcomer: dict[str, str]) -> Iterator[tuple[str, Path]]:
    """What `make run` printed until the registry was ready."""
    port = free_port()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            ["make", "run", f"ARGS=--secure-port={port}"],
            cwd=clone, env=newcomer, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            assert process.stdout
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("Try:"):
                    break
            else:
                errors.seek(0)
                pytest.fail("".join(lines) + errors.read())
            yield "".join(lines), clone
        finally:
            os.killpg(process.pid, signal.SIGINT)  # Ctrl-C reaches make and the server alike
            process.communicate(timeout=60)


def test_make_run_in_a_fresh_clone_answers_kubectl(started: tuple[str, Path], newcomer: dict[str, str]) -> None:
    printed, clone = started
    kubectl = programs.ensure("kubectl-1.36")
    command = printed.rpartition("Try:")[2].strip()
    shell = {**newcomer, "PATH": f"{kubectl.parent}:{newcomer['PATH']}"}
    done = subprocess.run(["bash", "-c", command], check=False, env=shell, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "No resources found\n")

    assert "==> Installing what requirements/runtime.lock names" in printed  # a newcomer sees what takes its time
    site = next((clone / ".venv" / "lib").glob("python3.*")) / "site-packages"
    installed = {path.name.partition("-")[0].replace("_", "-").lower() for path in site.glob("*.dist-info")}
    assert installed - {"cluster-registry"} <= pins(LOCKS["runtime"]).keys()


def test_an_index_that_cannot_be_reached_is_named_as_the_cause(clone: Path, newcomer: dict[str, str]) -> None:
    port = free_port()
    shut = {"PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple", "PIP_RETRIES": "0", "UV_HTTP_RETRIES": "0"}
    done = subprocess.run(
        ["make", "run"], check=False, cwd=clone, env={**newcomer, **shut}, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "What to do:" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (clone / ".venv" / "bin" / "clusterregistry").exists()
