"""The clients in ``go/``: built once for each content of that folder, kept in the cache, started and listened to."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.programs import ProgramError, cache, locked

SOURCES = Path(__file__).parent / "go"
RELEASES = {"0.36": "go.mod", "0.28": "client-go-0.28.mod"}
"""The releases of client-go, each with the file that names its modules: one pair with kube-apiserver 1.36, one old."""

PROTOBUF, JSON = "application/vnd.kubernetes.protobuf", "application/json"


def path(release: str) -> Path:
    """Where the clients are, or will be. What they are built from is part of it."""
    module = SOURCES / RELEASES[release]
    inputs = [*sorted(SOURCES.glob("*.go")), module, module.with_suffix(".sum")]
    digest = hashlib.sha256(b"\0".join(each.read_bytes() for each in inputs)).hexdigest()
    return cache() / f"clients-{release}-{digest[:12]}" / "clients"


def build(release: str, *, say: Callable[[str], None] = print) -> Path:
    """Makes sure that the clients are built and says where. Idempotent, and safe in several processes at once."""
    target = path(release)
    if target.exists():
        return target
    with locked(target.parent):
        if not target.exists():
            if shutil.which("go") is None:
                raise ProgramError(f"the clients are built from {SOURCES}, and there is no go here: install Go")
            say(f"client-go {release}: building its clients, which takes a minute or two the first time")
            with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
                _build(release, Path(scratch) / "clients").rename(target)
    return target


def _build(release: str, target: Path) -> Path:
    # -mod=readonly: what the sums do not name fails the build.
    environ = {**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"}
    command = ["nice", "go", "build", f"-modfile={RELEASES[release]}", "-ldflags=-s -w", "-o", str(target), "."]
    done = subprocess.run(
        command, check=False, cwd=SOURCES, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise ProgramError(f"go build failed:\n{(done.stderr or done.stdout).strip()[-2000:]}")
    return target


def built(release: str) -> Path:
    """The clients, if they are there; else the test is skipped."""
    found = path(release)
    if not found.exists():
        pytest.skip(f"the clients of client-go {release} are not built: `make clients` does it, which takes Go")
    return found
