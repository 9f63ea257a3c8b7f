"""kopf in an environment of its own, kept in the cache, and the operator that runs in it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.clients.client_process import ClientProcess
from tools import environment
from tools.programs import cache, locked

LOCK = Path(__file__).with_name("kopf.lock")
OPERATOR = Path(__file__).with_name("cluster_operator.py")


def path() -> Path:
    """Where the environment is, or will be. The Python that made it is part of it, and what it holds."""
    made_of = LOCK.read_bytes() + f"{_python()} {sys.version}".encode()
    return cache() / f"kopf-{hashlib.sha256(made_of).hexdigest()[:12]}"


def _python() -> str:
    """The Python behind that of a clone's environment: all clones share what is made with it."""
    return os.path.realpath(sys.executable)


def install(*, say: Callable[[str], None] = print) -> Path:
    """Makes sure that kopf is there and says where. Idempotent, and safe in several processes at once."""
    venv = path() / "venv"
    if venv.exists():
        return venv
    with locked(path()):
        if not venv.exists():
            say(f"kopf: installing what {LOCK.name} names")
            with tempfile.TemporaryDirectory(dir=path()) as scratch:
                # A rename is atomic: a process that sees the environment sees all of it.
                _install(Path(scratch) / "venv").rename(venv)
    return venv


def _install(venv: Path) -> Path:
    uv, environ = environment.find_uv(os.environ), environment.uv_environment(os.environ)
    command = [uv, "venv", "--quiet", "--python", _python(), str(venv)]
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, env=environ)
    if done.returncode:
        raise environment.EnvironmentProblem("uv could not make an environment for kopf: its message is above")
    environment.install(uv, lock=LOCK, venv=venv, environ=environ)
    return venv


def run(kubeconfig: Path, *flags: str, log: Path, post_logs: bool = False) -> ClientProcess:
    """The operator, as `kopf run` starts it. With ``post_logs`` all that it logs of an object becomes an event.

    Skips the test if kopf is not there.
    """
    venv = path() / "venv"
    if not venv.exists():
        pytest.skip("kopf is not installed: `make clients` does it")
    # By the module, as programs in an environment name the place where that was made.
    command = [str(venv / "bin" / "python"), "-m", "kopf", "run", *flags, str(OPERATOR)]
    environ = {"KUBECONFIG": str(kubeconfig), "PYTHONPATH": "", "POST_LOGS": "yes" if post_logs else ""}
    return ClientProcess(command, log=log, environ=environ)
