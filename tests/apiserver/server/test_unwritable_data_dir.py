"""A data directory that the server cannot write: the command reports the cause with a remedy, and leaves no files."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import clusterregistry
from tools.ports import free_port

NOBODY = 65534
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(clusterregistry.__file__).parent.parent), "HOME": "/"}


def command(data: Path) -> list[str]:
    place = (f"--data-dir={data}", f"--secure-port={free_port()}")
    return [sys.executable, "-m", "clusterregistry", "standalone", *place]


def run(line: list[str], user: int | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line, capture_output=True, text=True, check=False, timeout=60, user=user, env=ENVIRONMENT, cwd="/"
    )


def start(data: Path, *flags: str, user: int | None = None) -> subprocess.CompletedProcess[str]:
    """A start that fails; it is ended after a while should it not."""
    return run([*command(data), *flags], user)


@contextlib.contextmanager
def disk_of(size: str, directory: Path) -> Iterator[Path]:
    """A small disk, in memory."""
    directory.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", directory], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that others can get to."""
    if os.getuid() != 0:
        pytest.skip("only root can run a server as another user")
    if not _runs_as(NOBODY):
        pytest.skip("other users cannot read this installation, so none of them can run a server of it")
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def _runs_as(user: int) -> bool:
    try:
        return run([sys.executable, "-c", "import clusterregistry.registry.main"], user).returncode == 0
    except PermissionError:  # the Python itself is in a directory of root alone
        return False


def files_in(directory: Path) -> set[str]:
    return {path.name for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("below", ["data", "data/deeper"], ids=["itself", "one-to-be-made-in-it"])
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_directory_of_another_user_is_named_with_both_users(reachable: Path, below: str, mode: int) -> None:
    (reachable / "data").mkdir()
    (reachable / "data").chmod(mode)
    done = start(reachable / below, user=NOBODY)
    assert done.returncode == 3, done.stderr
    owner, own = (f"uid {each} ({pwd.getpwuid(each).pw_name})" for each in (0, NOBODY))
    assert f"{reachable / 'data'} belongs to {owner}, and the server runs as {own}" in done.stderr
    assert f"What to do: run the server as {owner}, give {reachable / 'data'} and what is in it to {own}" in done.stderr
    assert "--cert-dir" not in done.stderr
    assert files_in(reachable) == set()


def test_a_directory_for_certificates_of_another_user_is_named(reachable: Path) -> None:
    data, certs = reachable / "data", reachable / "certs"
    data.mkdir()
    os.chown(data, NOBODY, NOBODY)
    certs.mkdir(mode=0o700)
    done = start(data, f"--cert-dir={certs}", user=NOBODY)
    assert done.returncode == 3, done.stderr
    assert f"{certs} belongs to uid 0" in done.stderr


def test_a_database_of_another_user_is_named(reachable: Path) -> None:
    data = reachable / "data"
    data.mkdir()
    os.chown(data, NOBODY, NOBODY)
    (data / "registry.db").touch(mode=0o600)
    done = start(data, user=NOBODY)
    assert done.returncode == 3, done.stderr
    assert f"give {data / 'registry.db'} to uid {NOBODY}" in done.stderr
    assert f"{data / 'registry.db'} belongs to uid 0" in done.stderr


def test_an_own_directory_that_cannot_be_written_is_not_blamed_on_another_user(reachable: Path) -> None:
    data = reachable / "data"
    data.mkdir()
    os.chown(data, NOBODY, NOBODY)
    data.chmod(0o500)
    done = start(data, user=NOBODY)
    assert done.returncode == 3, done.stderr
    assert "belongs to" not in done.stderr
    assert f"What to do: let the user that runs the server (uid {NOBODY}) write there" in done.stderr


@pytest.mark.parametrize("size", ["8k", "32k", "48k"])
def test_a_disk_without_room_for_a_database_is_full_and_nothing_stays(tmp_path: Path, size: str) -> None:
    with disk_of(size, tmp_path / "disk") as disk:
        done = start(disk / "data")
        assert done.returncode == 3, done.stderr
        assert "the disk is full" in done.stderr
        assert "What to do: free some space" in done.stderr
        assert files_in(disk) == {"registry.db.lock"}


@pytest.mark.parametrize("size", ["64k", "128k"])
def test_a_disk_that_is_full_before_all_certificates_are_made_is_full(tmp_path: Path, size: str) -> None:
    with disk_of(size, tmp_path / "disk") as disk:
        done = start(disk / "data")
        assert done.returncode == 3, done.stderr
        assert "cannot be written: No space left on device\nWhat to do: free some space on that disk" in done.stderr
        begun = [name for name in files_in(disk) if name.startswith(".") and name != ".lock"]
        assert begun == []
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        with subprocess.Popen(command(disk / "data"), stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as again:
            assert again.stdout is not None
            assert any(line.startswith("Ready: ") for line in again.stdout)
            again.terminate()
            assert again.wait(20) == 0


def test_a_read_only_file_system_is_named_as_such(tmp_path: Path) -> None:
    with disk_of("1m", tmp_path / "disk") as disk:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        done = start(disk / "data")
        assert done.returncode == 3, done.stderr
        assert "Read-only file system\nWhat to do: make that file system writable" in done.stderr
