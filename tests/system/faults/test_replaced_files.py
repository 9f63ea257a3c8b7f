"""Files that are removed or replaced under a running server: no write is taken that would be lost."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import CLUSTERS, cluster, names, path_of
from tests.apiserver.server.programs import Program


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with Program(tmp_path) as started:
        yield started


@pytest.fixture
def client(program: Program) -> Iterator[Client]:
    with program.client() as client:
        for number in range(5):
            client.post(CLUSTERS, cluster(f"n{number}")).expect(201)
        yield client


def remove(data: Path) -> None:
    (data / "registry.db").unlink()


def remove_all(data: Path) -> None:
    for name in ("registry.db", "registry.db-wal", "registry.db-shm", "registry.db.lock"):
        (data / name).unlink()


def remove_log(data: Path) -> None:
    (data / "registry.db-wal").unlink()


def replace(data: Path) -> None:
    shutil.copyfile(data / "registry.db", data / "other.db")
    (data / "other.db").rename(data / "registry.db")


def assert_not_taken(client: Client) -> None:
    """Whatever is written is refused, and what is known is still served."""
    for answer in (
        client.post(CLUSTERS, cluster("lost")),
        client.put(path_of("n0"), cluster("n0", "gce")),
        client.delete(path_of("n0")),
    ):
        message = answer.refused(503, "ServiceUnavailable")["message"]
        assert "was removed or replaced while the server runs; nothing was written" in message
    assert names(client.get(CLUSTERS).expect(200)) == ["n0", "n1", "n2", "n3", "n4"]
    assert client.get("/readyz").status == 500
    message = client.get("/readyz/storage").body.decode()
    assert "do not stop the server yet" in message
    assert "clusterregistry storage backup FILE" in message
    assert client.get("/livez").status == 200


def storage(program: Program, *arguments: str) -> str:
    command = [sys.executable, "-m", "clusterregistry", "storage", *arguments, "--data-dir", str(program.data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("harm", [remove, remove_all, replace])
def test_a_server_whose_database_is_gone_takes_no_writes_and_its_data_can_be_rescued(
    program: Program, client: Client, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    harm(program.data)
    assert_not_taken(client)
    backup = str(tmp_path / "rescued.db")
    said = storage(program, "backup", backup)
    assert f"what the server (process {program.process.pid}) still has open" in said
    assert program.stop() == 0
    storage(program, "restore", backup)
    with program.start().client() as again:
        assert names(again.get(CLUSTERS).expect(200)) == ["n0", "n1", "n2", "n3", "n4"]


def test_a_file_that_another_program_still_has_open_is_no_backup(
    program: Program, client: Client, tmp_path: Path
) -> None:
    """Such as a shell that was left open before a backup was restored."""
    with contextlib.closing(sqlite3.connect(program.data / "registry.db")) as shell:
        shell.execute("SELECT count(*) FROM log").fetchone()
        assert names(client.get(CLUSTERS).expect(200))
        assert program.stop() == 0
        replace(program.data)
        with program.start().client() as again:
            again.post(CLUSTERS, cluster("newest")).expect(201)
            assert "still has open" not in storage(program, "backup", str(tmp_path / "backup.db"))
    with contextlib.closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
        assert backup.execute("SELECT count(*) FROM log WHERE key LIKE '%/newest'").fetchone() == (1,)


def test_a_server_that_is_not_asked_for_a_write_is_not_ready_either(program: Program, client: Client) -> None:
    remove(program.data)
    assert client.get("/readyz").status == 500


def test_a_server_without_its_log_takes_no_writes(program: Program, client: Client) -> None:
    remove_log(program.data)
    assert_not_taken(client)


def test_a_file_that_is_moved_back_is_served_again(program: Program, client: Client) -> None:
    database, elsewhere = program.data / "registry.db", program.data / "moved.db"
    database.rename(elsewhere)
    assert_not_taken(client)
    elsewhere.rename(database)
    client.post(CLUSTERS, cluster("after")).expect(201)
    assert client.get("/readyz").status == 200
    program.signal(signal.SIGKILL)
    program.wait()
    with program.start().client() as again:
        assert "after" in names(again.get(CLUSTERS).expect(200))


def test_a_server_that_stops_leaves_the_files_alone_that_are_in_the_place_of_its_own(
    program: Program, client: Client
) -> None:
    kept = ("registry.db", "registry.db-wal", "registry.db-shm")
    for name in kept:
        (program.data / name).unlink()
        (program.data / name).write_bytes(f"another server's {name}".encode() * 100)
    before = [((program.data / name).read_bytes(), (program.data / name).stat().st_mtime_ns) for name in kept]
    client.post(CLUSTERS, cluster("lost")).refused(503, "ServiceUnavailable")
    assert program.stop() == 0
    assert [((program.data / name).read_bytes(), (program.data / name).stat().st_mtime_ns) for name in kept] == before


@pytest.mark.parametrize("empty", [False, True])
def test_a_server_does_not_start_on_a_log_without_its_database(
    program: Program,
    client: Client,
    *,
    empty: bool,
) -> None:
    assert client.get("/readyz").status == 200
    program.signal(signal.SIGKILL)
    program.wait()
    os.truncate(program.data / "registry.db", 0) if empty else (program.data / "registry.db").unlink()
    before = {entry.name: (entry.read_bytes(), entry.stat().st_mtime_ns) for entry in database_files(program.data)}
    with pytest.raises(AssertionError, match="the server ended with 3"):
        program.start()
    assert re.search(r"registry\.db is (empty|missing), but its write-ahead log .* holds data", program.logged())
    after = {entry.name: (entry.read_bytes(), entry.stat().st_mtime_ns) for entry in database_files(program.data)}
    assert after == before


def test_a_file_that_is_moved_behind_a_link_without_its_log_is_not_served(program: Program, client: Client) -> None:
    """SQLite would look for the log beside the file, and find none: all that was written last would be gone."""
    database, moved = program.data / "registry.db", program.directory / "moved.db"
    database.rename(moved)
    database.symlink_to(moved)
    assert_not_taken(client)
    program.signal(signal.SIGKILL)
    program.wait()
    with pytest.raises(AssertionError, match="the server ended with 3"):
        program.start()
    assert "beside the link holds data\nWhat to do: nothing was changed. If the file was moved" in program.logged()
    (program.data / "registry.db-wal").rename(f"{moved}-wal")
    with program.start().client() as again:
        assert names(again.get(CLUSTERS).expect(200)) == ["n0", "n1", "n2", "n3", "n4"]
        # Now it is the file behind the link that is looked after.
        again.post(CLUSTERS, cluster("after")).expect(201)
        Path(f"{moved}-wal").rename(program.directory / "elsewhere")
        again.post(CLUSTERS, cluster("lost")).refused(503, "ServiceUnavailable")
        assert again.get("/readyz").status == 500


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_a_server_does_not_start_on_what_is_no_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    program = Program(tmp_path)
    program.data.mkdir(mode=0o700)
    make(program.data / "registry.db")
    with pytest.raises(AssertionError, match="the server ended with 3"):
        program.start()
    assert "registry.db is no regular file, but a directory, a pipe or a device" in program.logged()
    assert [entry.name for entry in database_files(program.data)] == ["registry.db"]


def database_files(data: Path) -> list[Path]:
    return [entry for entry in data.iterdir() if entry.name.startswith("registry.db")]
