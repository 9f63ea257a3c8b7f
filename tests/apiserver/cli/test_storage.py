"""The storage commands: arguments, output and exit status."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import clusterregistry
from clusterregistry.apiserver.cli.storage import check, dispatch
from clusterregistry.apiserver.cli.storage.stored_object import object_problem
from clusterregistry.apiserver.storage import location as locations
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.location import EtcdLocation
from clusterregistry.apiserver.storage.object_bytes import to_stored
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage, schema
from clusterregistry.cli import progress
from clusterregistry.cli.progress import Progress, counted, shown_bytes
from clusterregistry.registry.main import main
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster, Settings
from tests.product import ETCD_PREFIX, OPTIONS
from tools import live_server
from tools.ports import free_port

Output = pytest.CaptureFixture[str]
Storage = Callable[..., int]

PREFIX = "/clusterregistry.k8s.io/clusters/"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with three clusters at revision 4, and no server."""
    directory = tmp_path / "data"
    directory.mkdir()
    fill(directory / "registry.db", "oslo", "paris", "rome")
    return directory


@pytest.fixture
def storage(data: Path) -> Storage:
    """Runs a storage command on that directory."""

    def run(*arguments: str, **environ: str) -> int:
        return main(["storage", *arguments], {"CLUSTERREGISTRY_DATA_DIR": str(data), **environ})

    return run


def fill(path: Path, *names: str) -> None:
    async def create() -> None:
        store = await SQLiteStorage.open(path)
        for name in names:
            await store.create(PREFIX + name, cluster(name))
        await store.close()

    asyncio.run(create())


def cluster(name: str, *, uid: str = "290b8f6e") -> bytes:
    return to_stored({"kind": "Cluster", "metadata": {"name": name, "uid": uid}})


def rows(path: Path) -> list[tuple[str, bytes]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT key, value FROM log ORDER BY key").fetchall()


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


# Backup and restore


def test_a_backup_prints_what_it_holds_and_what_to_do_next(
    storage: Storage, data: Path, tmp_path: Path, capsys: Output
) -> None:
    target = tmp_path / "a backup.db"
    assert storage("backup", str(target)) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith(f"Backed up 3 objects at revision 4 to {target} (")
    assert f"with ca.crt and ca.key from {data}" in captured.out
    assert f"clusterregistry storage restore '{target}'" in captured.out
    assert rows(target) == rows(data / "registry.db")


def test_a_backup_replaces_a_file_only_with_force(storage: Storage, tmp_path: Path, capsys: Output) -> None:
    target = tmp_path / "backup.db"
    target.write_text("precious")
    assert storage("backup", str(target)) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"clusterregistry storage backup: {target} exists\n"
        "What to do: name another file, or replace this one with --force\n"
    )
    assert target.read_text() == "precious"
    assert storage("backup", "--force", str(target)) == 0


@pytest.mark.parametrize("arguments", [[], ["--force"]])
@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/null"), lambda path: path.symlink_to("x")]
)
def test_a_backup_replaces_nothing_but_regular_files(
    storage: Storage, tmp_path: Path, capsys: Output, make: Callable[[Path], None], arguments: list[str]
) -> None:
    target = tmp_path / "target"
    make(target)
    before = target.lstat()
    assert storage("backup", str(target), *arguments) == 3
    assert capsys.readouterr().err == (
        f"clusterregistry storage backup: {target} is no regular file, but a link, a pipe or a device\n"
        "What to do: nothing was changed; name a file\n"
    )
    assert (target.lstat().st_ino, target.lstat().st_mode) == (before.st_ino, before.st_mode)


@pytest.mark.parametrize("command", ["restore", "check", "stats"])
def test_an_empty_file_is_called_empty(storage: Storage, tmp_path: Path, capsys: Output, command: str) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    assert storage(command, str(empty)) == 3
    printed = capsys.readouterr().err
    assert f"{empty} is empty\n" in printed
    assert "another program" not in printed


def test_a_command_does_not_throw_away_the_log_beside_an_empty_database(storage: Storage, data: Path) -> None:
    (data / "registry.db").write_bytes(b"")
    log = data / "registry.db-wal"
    log.write_bytes(b"precious" * 100)
    for command in (["check"], ["stats"], ["backup", str(data / "backup.db")]):
        assert storage(*command) == 3
        assert log.read_bytes() == b"precious" * 100


def harm_schema(content: bytearray) -> None:
    content[100:200] = b"\xff" * 100


def harm_rows(content: bytearray) -> None:
    content[-8000:] = b"\xff" * 8000


@pytest.mark.parametrize("harm", [harm_schema, harm_rows])
def test_a_damaged_backup_is_not_answered_with_the_advice_to_restore_a_backup(
    storage: Storage, data: Path, tmp_path: Path, capsys: Output, harm: Callable[[bytearray], None]
) -> None:
    backup = tmp_path / "backup.db"
    fill(data / "registry.db", *(f"n{number}" for number in range(200)))
    assert storage("backup", str(backup)) == 0
    content = bytearray(backup.read_bytes())
    harm(content)
    backup.write_bytes(content)
    capsys.readouterr()
    assert storage("restore", str(backup)) == 3
    printed = capsys.readouterr().err
    assert "damaged" in printed
    assert "restore a backup" not in printed
    assert "use another backup" in printed


def test_files_are_found_from_where_the_operator_is(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert storage("backup", "backup.db") == 0
    assert (tmp_path / "backup.db").is_file()


def test_an_interrupted_backup_is_no_success(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "__call__", interrupt)
    assert storage("backup", str(tmp_path / "backup.db")) == 3
    assert "interrupted\nWhat to do: no backup was written" in capsys.readouterr().err
    assert not (tmp_path / "backup.db").exists()


def test_a_restore_prints_where_the_old_database_is_and_what_to_do_next(
    storage: Storage, data: Path, tmp_path: Path, capsys: Output
) -> None:
    storage("backup", str(tmp_path / "backup.db"))
    fill(data / "registry.db", "later")
    (data / "ca.key").touch()
    capsys.readouterr()
    assert storage("restore", str(tmp_path / "backup.db")) == 0
    (kept,) = data.glob("registry.db.replaced-*")
    assert capsys.readouterr().out == (
        f"Restored 3 objects to {data / 'registry.db'}.\n"
        f"The database that was there is kept as {kept}.\n"
        "Revisions continue after 1000005: clients that watch will list again.\n"
        "Next: start the server.\n"
    )
    assert PREFIX + "later" in dict(rows(kept))
    assert PREFIX + "later" not in dict(rows(data / "registry.db"))


def test_a_restore_on_a_new_machine_reminds_of_the_certificates(
    storage: Storage, tmp_path: Path, capsys: Output
) -> None:
    storage("backup", str(tmp_path / "backup.db"))
    assert storage("restore", "--data-dir", str(tmp_path / "new"), str(tmp_path / "backup.db")) == 0
    text = capsys.readouterr().out
    assert "is kept as" not in text
    assert "Next: put ca.crt and ca.key from the backup into the same directory, then start the server." in text
    assert (tmp_path / "new" / "registry.db").is_file()


def test_a_backup_with_a_damaged_object_is_not_restored(
    storage: Storage, data: Path, tmp_path: Path, capsys: Output
) -> None:
    storage("backup", str(tmp_path / "backup.db"))
    change(tmp_path / "backup.db", "UPDATE log SET value = CAST('[]' AS BLOB) WHERE revision = 3")
    before = rows(data / "registry.db")
    assert storage("restore", str(tmp_path / "backup.db")) == 3
    error = capsys.readouterr().err
    assert f"is damaged: revision 3 of {PREFIX}paris: its value is not an object with metadata" in error
    assert "nothing was changed" in error
    assert rows(data / "registry.db") == before


def test_a_backup_with_an_object_that_cannot_be_read_is_restored_when_that_is_wanted(
    storage: Storage, data: Path, tmp_path: Path, capsys: Output
) -> None:
    """A server serves all but this object. The backup may be the only one, or what was rescued from that server."""
    change(data / "registry.db", "UPDATE log SET value = x'ff' WHERE revision = 3")
    assert storage("backup", str(tmp_path / "backup.db")) == 0
    assert storage("restore", str(tmp_path / "backup.db")) == 3
    assert "--force restores this one: the server sets aside what cannot be read" in capsys.readouterr().err
    assert storage("restore", "--force", str(tmp_path / "backup.db")) == 0
    assert "Restored 3 objects" in capsys.readouterr().out


def test_force_does_not_restore_a_file_that_is_damaged(
    storage: Storage, data: Path, tmp_path: Path, capsys: Output
) -> None:
    storage("backup", str(tmp_path / "backup.db"))
    change(tmp_path / "backup.db", "UPDATE log SET prev_revision = 2 WHERE revision = 3")
    before = rows(data / "registry.db")
    assert storage("restore", "--force", str(tmp_path / "backup.db")) == 3
    assert "--force" not in capsys.readouterr().err
    assert rows(data / "registry.db") == before


# Check and stats


def test_objects_that_cannot_be_read_in_a_file_that_is_whole_are_to_be_deleted(
    storage: Storage, data: Path, capsys: Output
) -> None:
    change(data / "registry.db", "UPDATE log SET value = x'ff' WHERE revision = 3")
    assert storage("check") == 1
    assert "What to do: the file itself is whole" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--full"]])
def test_a_good_database_is_fine(storage: Storage, data: Path, arguments: list[str], capsys: Output) -> None:
    assert storage("check", *arguments) == 0
    assert capsys.readouterr() == (f"{data / 'registry.db'} is fine: 3 objects, revision 4, format 2.\n", "")


def test_each_problem_is_a_line_and_the_status_is_1(storage: Storage, data: Path, capsys: Output) -> None:
    change(data / "registry.db", "UPDATE log SET value = CAST('no' AS BLOB), prev_revision = 2 WHERE revision = 3")
    assert storage("check") == 1
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == f"revision 3 of {PREFIX}paris: it says that it supersedes revision 2, but it supersedes nothing"
    assert lines[1].startswith(f"revision 3 of {PREFIX}paris: its value is not JSON: ")
    assert len(lines) == 2
    assert captured.err.startswith(f"{data / 'registry.db'}: 2 problems found.\nWhat to do: ")


def test_very_many_problems_are_cut_short(
    storage: Storage, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(check, "MOST_LINES", 2)
    change(data / "registry.db", "UPDATE log SET value = x'00'")
    assert storage("check") == 1
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 2
    assert "more than 2 problems found." in captured.err


def test_a_backup_can_be_checked_too(storage: Storage, tmp_path: Path, capsys: Output) -> None:
    storage("backup", str(tmp_path / "backup.db"))
    assert storage("check", str(tmp_path / "backup.db")) == 0
    assert f"{tmp_path / 'backup.db'} is fine" in capsys.readouterr().out


def test_stats_for_people(storage: Storage, data: Path, capsys: Output) -> None:
    assert storage("stats") == 0
    assert [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()][:1] == [
        ["File:", f"{data / 'registry.db'} (format 2)"]
    ]
    assert storage("stats") == 0
    text = " ".join(capsys.readouterr().out.split())
    for expected in ("3 clusterregistry.k8s.io/clusters", "Revision: 4", "Oldest readable: 1", "Log: 3 revisions"):
        assert expected in text


@pytest.mark.parametrize("arguments", [["-o", "json"], ["-o=json"], ["--output=json"]])
def test_stats_for_programs(storage: Storage, data: Path, arguments: list[str], capsys: Output) -> None:
    assert storage("stats", *arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {
        "file": str(data / "registry.db"),
        "format": schema.VERSION,
        "fileBytes": (data / "registry.db").stat().st_size,
        "freeBytes": 0,
        "walBytes": 0,
        "objects": 3,
        "objectsByPrefix": {PREFIX: 3},
        "objectBytes": sum(len(value) for _, value in rows(data / "registry.db")),
        "revision": 4,
        "oldestReadableRevision": 1,
        "revisionsInLog": 3,
    }


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (cluster("oslo"), ""),
        (b"{", "not JSON"),
        (b"[]", "not an object with metadata"),
        (b'{"metadata":[]}', "not an object with metadata"),
        (cluster("paris"), "its metadata.name is 'paris'"),
        (cluster("oslo", uid=""), "no metadata.uid"),
        (cluster("oslo").replace(b"\n", b""), "no place for its resource version"),
    ],
)
def test_a_value_must_be_an_object_of_its_name(value: bytes, problem: str) -> None:
    printed = object_problem(PREFIX + "oslo", value)
    assert problem in printed
    assert bool(printed) == bool(problem)


# Copy


def test_a_copy_of_the_data_directory_goes_to_another_file(
    storage: Storage, data: Path, tmp_path: Path, capsys: Output
) -> None:
    target = tmp_path / "copy.db"
    assert storage("copy", f"--to=sqlite:{target}") == 0
    text = capsys.readouterr().out
    source = f"sqlite:{data / 'registry.db'}"
    assert text.startswith(f"Copied 3 objects from {source} (revision 4) to sqlite:{target}.\nNext: start the server")
    assert rows(target) == rows(data / "registry.db")
    assert storage("copy", "--from", source, "--to", f"sqlite:{target}") == 0
    text = capsys.readouterr().out
    assert text.startswith("Copied 0 objects")
    assert "\n3 objects had been there already.\n" in text


def test_a_copy_into_a_store_with_other_objects_needs_merge(
    storage: Storage, data: Path, tmp_path: Path, capsys: Output
) -> None:
    target = tmp_path / "copy.db"
    fill(target, "mine")
    change(data / "registry.db", f"UPDATE log SET key = '{PREFIX}mine' WHERE revision = 4")
    assert storage("copy", f"--to=sqlite:{target}") == 3
    error = capsys.readouterr().err
    assert f"sqlite:{target} is not empty: it holds 1 object with another content ({PREFIX}mine)" in error
    assert "What to do: copy into an empty store, or add --merge" in error
    assert len(rows(target)) == 1
    assert storage("copy", "--merge", f"--to=sqlite:{target}") == 0
    text = capsys.readouterr().out
    assert text.startswith("Copied 2 objects")
    assert f"1 object there with another content, not replaced:\n  {PREFIX}mine\n" in text
    assert dict(rows(target))[PREFIX + "mine"] == cluster("mine")


def test_of_many_strange_objects_some_are_named(storage: Storage, tmp_path: Path, capsys: Output) -> None:
    fill(tmp_path / "copy.db", *(f"strange-{number}" for number in range(9)))
    assert storage("copy", f"--to=sqlite:{tmp_path / 'copy.db'}") == 3
    error = capsys.readouterr().err
    assert f"9 objects that the source has not ({PREFIX}strange-0, " in error
    assert f"{PREFIX}strange-4, ...)" in error


def test_a_source_that_is_not_there_makes_no_target(storage: Storage, tmp_path: Path, capsys: Output) -> None:
    arguments = [f"--from=sqlite:{tmp_path / 'nothing.db'}", f"--to=sqlite:{tmp_path / 'copy.db'}"]
    assert storage("copy", *arguments) == 3
    assert f"there is no database at {tmp_path / 'nothing.db'}" in capsys.readouterr().err
    assert not (tmp_path / "nothing.db").exists()
    assert not (tmp_path / "copy.db").exists()


ETCD = {"CLUSTERREGISTRY_ETCD_SERVERS": "http://127.0.0.1:1,http://127.0.0.1:2"}


@pytest.mark.parametrize("name", ["backup", "restore", "check", "stats"])
def test_a_registry_in_etcd_has_no_file_and_the_remedy_names_the_alternatives(
    name: str, storage: Storage, data: Path, tmp_path: Path, capsys: Output
) -> None:
    backup = tmp_path / "backup.db"
    storage("backup", str(backup))
    capsys.readouterr()
    before = rows(data / "registry.db")
    assert storage(name, *([str(backup)] if name in {"backup", "restore"} else []), **ETCD) == 3
    error = capsys.readouterr().err
    assert "keeps its objects in etcd at 127.0.0.1:1, 127.0.0.1:2, not in a file" in error
    assert "What to do: use etcd's own tools, such as `etcdctl snapshot save FILE`" in error
    assert rows(data / "registry.db") == before
    assert storage("check", str(backup), **ETCD) == 0


def test_the_options_of_the_server_have_the_credentials_of_etcd(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []

    async def note(location: object) -> None:
        opened.append(location)
        await unavailable(location)

    monkeypatch.setattr(locations, "open_location", note)
    (tmp_path / "password").write_text("secret")
    access = ["--etcd-prefix=/ours/", "--etcd-username=root", f"--etcd-password-file={tmp_path / 'password'}"]
    assert storage("copy", f"--to=sqlite:{tmp_path / 'copy.db'}", *access, **ETCD) == 3
    assert storage("copy", "--from=etcd:https://one", f"--to=sqlite:{tmp_path / 'copy.db'}", *access) == 3
    first, second = opened
    assert isinstance(first, EtcdLocation)
    assert isinstance(second, EtcdLocation)
    assert (first.settings.endpoints, second.settings.endpoints) == (("127.0.0.1:1", "127.0.0.1:2"), ("one:2379",))
    assert (first.settings.tls, second.settings.tls) == (False, True)
    assert (first.settings.prefix, first.settings.user) == (second.settings.prefix, second.settings.user)
    assert (second.settings.prefix, second.settings.user) == ("/ours", "root")


# What goes wrong with all of them

ON_A_DATABASE = {
    "backup": ["elsewhere.db"],
    "restore": ["registry.db"],
    "check": [],
    "stats": [],
    "copy": ["--to=sqlite:elsewhere.db"],
}


REFUSED = {
    "newer": (
        "UPDATE meta SET value = 99 WHERE name = 'version'",
        "has format 99 of a newer version",
        "nothing was changed",
    ),
    "another's": ("PRAGMA application_id = 77", "is another program's SQLite database", "name the right one"),
}


@pytest.mark.parametrize("name", ON_A_DATABASE)
@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_of_another_program_is_refused_by_every_command(
    name: str, kind: str, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    statement, message, remedy = REFUSED[kind]
    change(data / "registry.db", statement)
    before = (data / "registry.db").read_bytes()
    monkeypatch.chdir(data)
    target = ["--data-dir=new"] if name == "restore" else [f"--data-dir={data}"]
    assert main(["storage", name, *target, *ON_A_DATABASE[name]], {}) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"clusterregistry storage {name}: {data / 'registry.db'} {message}")
    assert remedy in captured.err.partition("What to do: ")[2]
    assert (data / "registry.db").read_bytes() == before
    assert not (data / "elsewhere.db").exists()
    assert not (data / "new").exists()


@pytest.mark.parametrize("content", [b"hello\n", b"<html>" * 2000, bytes(range(256)) * 64])
def test_a_file_that_is_no_database_can_be_replaced_by_a_backup_as_the_server_advises(
    content: bytes, storage: Storage, data: Path, tmp_path: Path, capsys: Output
) -> None:
    assert storage("backup", str(tmp_path / "backup.db")) == 0
    (data / "registry.db").write_bytes(content)
    assert main(["standalone", f"--data-dir={data}", f"--secure-port={free_port()}"], {}) == 3
    message, remedy = capsys.readouterr().err.splitlines()
    assert message.startswith(f"clusterregistry standalone: {data}/registry.db: the file is not an SQLite database")
    assert remedy.startswith("What to do: restore a backup: `clusterregistry storage restore FILE`")
    assert (data / "registry.db").read_bytes() == content
    assert storage("restore", str(tmp_path / "backup.db")) == 0
    assert "Restored 3 objects" in capsys.readouterr().out
    assert content in [kept.read_bytes() for kept in data.glob("registry.db.*")]


def test_a_file_that_is_no_backup_is_not_restored(storage: Storage, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    assert storage("restore", str(tmp_path / "notes.txt")) == 3
    error = capsys.readouterr().err
    assert "notes.txt: the file is not an SQLite database" in error
    assert "What to do: nothing was changed; name a file that `clusterregistry storage backup` has made" in error


@pytest.mark.parametrize("name", ["backup", "check", "stats", "copy"])
def test_a_data_directory_without_a_database_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["storage", name, "--data-dir=empty", *ON_A_DATABASE[name]], {}) == 3
    error = capsys.readouterr().err
    assert f"there is no database at {tmp_path / 'empty' / 'registry.db'}" in error
    assert "--data-dir" in error.partition("What to do: ")[2]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        (["backup"], ["name the FILE that the backup is to be written to"]),
        (["backup", ""], ["an empty name is no file"]),
        (["backup", "a\0b"], ["NUL"]),
        (
            ["backup", "a", "b", "--forec"],
            ['unexpected argument "b"', "unknown option --forec (did you mean --force?)"],
        ),
        (["backup", "a", "--force=maybe", "--data-dir="], ["--force: ", "--data-dir: "]),
        (["backup", "a", "--data-dir"], ["--data-dir: needs a value (--data-dir=DIR)"]),
        (["restore"], ["name the FILE that is to be restored"]),
        (["check", "--ful"], ["did you mean --full?"]),
        (["stats", "-o", "yaml"], ['-o: "yaml" is not one of text, json']),
        (["stats", "--", "-o", "b"], ['unexpected argument "b"']),
        (["copy"], ["--to: say where to copy to"]),
        (["copy", "--to=registry.db", "--from=etcd:one:x"], ["--to: ", "write sqlite:FILE", "--from: "]),
        (["copy", "--from=sqlite:a", "--to=sqlite:a"], ["this is the place to copy from"]),
        (["copy", "--to=etcd:one", "--etcd-certfile=x"], ["--etcd-certfile and --etcd-keyfile must be given together"]),
    ],
)
def test_every_mistake_on_the_command_line_is_named(
    arguments: list[str], problems: list[str], tmp_path: Path, capsys: Output
) -> None:
    assert main(["storage", *arguments], {"HOME": str(tmp_path)}) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    for problem in problems:
        assert problem in captured.err
    assert captured.err.endswith(f"See: clusterregistry storage {arguments[0]} --help\n")
    assert list(tmp_path.iterdir()) == []


def test_the_data_directory_comes_from_where_the_server_has_it_from(data: Path, tmp_path: Path, capsys: Output) -> None:
    config = tmp_path / "registry.yaml"
    config.write_text(f"data-dir: {data}\nsecure-port: 9443\ntls-cert-file: nowhere.crt\n")
    home = tmp_path / "home"
    (home / ".local" / "share").mkdir(parents=True)
    (home / ".local" / "share" / "clusterregistry").symlink_to(data)
    ways: list[tuple[list[str], dict[str, str]]] = [
        ([f"--data-dir={data}"], {}),
        (["--config", str(config)], {}),
        ([], {"CLUSTERREGISTRY_CONFIG": str(config)}),
        ([], {"HOME": str(home)}),
    ]
    for arguments, environ in ways:
        assert main(["storage", "check", *arguments], environ) == 0
        assert "registry.db is fine: 3 objects" in capsys.readouterr().out
    assert main(["storage", "check"], {"CLUSTERREGISTRY_DATA_DRI": "x"}) == 2
    assert "CLUSTERREGISTRY_DATA_DIR?" in capsys.readouterr().err


# Help


def examples() -> Iterator[list[str]]:
    """The commands that the help texts show."""
    texts = [OPTIONS.name_program(dispatch.HELP), *(each.help_text(OPTIONS) for each in dispatch.COMMANDS.values())]
    for text in texts:
        shown = text.partition("Examples:\n")[2].partition("Flags:\n")[0].replace("\\\n", " ")
        yield from (
            shlex.split(line)[2:] for line in shown.splitlines() if line.startswith("  clusterregistry storage")
        )


@pytest.mark.parametrize("name", dispatch.COMMANDS)
def test_every_command_has_examples(name: str, capsys: Output) -> None:
    assert main(["storage", name, "--zzz", "--help"], {}) == 0
    text = capsys.readouterr().out
    for expected in (f"clusterregistry storage {name}", "Usage:", "Examples:", "Flags:", "--data-dir=DIR"):
        assert expected in text
    for spelling in (["storage", "help", name], ["help", "storage", name]):
        assert main(spelling, {}) == 0
        assert capsys.readouterr().out == text
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("example", list(examples()), ids=" ".join)
def test_the_examples_are_right(example: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As far as the command line goes: there is nothing that they could work on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(locations, "open_location", unavailable)
    (tmp_path / "clusterregistry").mkdir()
    for name in ("clusterregistry/registry.db", "ca.crt", "client.crt", "client.key"):
        (tmp_path / name).touch()
    elsewhere = [re.sub("/(var/lib|backup)/", f"{tmp_path}/nowhere/", argument) for argument in example]
    assert main(["storage", *elsewhere], {"XDG_DATA_HOME": str(tmp_path)}) == 3


async def unavailable(_: object) -> None:
    raise StorageUnavailable("not here")


def test_the_help_names_every_command_and_status(capsys: Output) -> None:
    assert main(["storage", "--help"], {}) == 0
    text = capsys.readouterr().out
    for expected in (*dispatch.COMMANDS, "  0  ", "  1  ", "  2  ", "  3  "):
        assert expected in text
    assert main(["storage", "help"], {}) == 0
    assert capsys.readouterr().out == text


# Progress


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("on_terminal", "later"), [(True, 1.0), (False, 10.0)])
def test_progress_is_printed_after_a_second_and_then_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: Output, *, on_terminal: bool, later: float
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: on_terminal)
    clock = Clock()
    show = Progress("copied", "objects", now=clock)
    show(1, 2000)
    clock.now += progress.PATIENCE - 0.01
    show(2, 2000)
    assert capsys.readouterr().err == ""
    clock.now += 0.01
    show(500, 2000)
    clock.now += later - 0.01
    show(600, 2000)
    assert capsys.readouterr().err == "... copied 500 of 2,000 objects (25%)\n"
    clock.now += 0.01
    show(0, 0)
    assert capsys.readouterr().err == "... copied all objects\n"


def test_sizes_and_counts_have_their_units() -> None:
    sizes = {0: "0 bytes", 999: "999 bytes", 1000: "1.0 KB", 4_200_000: "4.2 MB", 7_000_000_000_000: "7000.0 GB"}
    assert {size: shown_bytes(size) for size in sizes} == sizes
    assert [counted(number, "object") for number in (0, 1, 1234)] == ["0 objects", "1 object", "1,234 objects"]


# Beside a server


def test_a_running_server_is_backed_up_checked_and_measured_but_not_replaced(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "clusterregistry"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        sources = str(Path(clusterregistry.__file__).parents[1])  # these, and not what happens to be installed
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": sources}
        environ["CLUSTERREGISTRY_DATA_DIR"] = str(tmp_path / "data")
        return subprocess.run(
            [*command, "storage", *arguments], check=False, capture_output=True, text=True, env=environ, cwd=tmp_path
        )

    with live_server.running(tmp_path, command=command) as server:
        done = [run("backup", "backup.db"), run("check", "--full"), run("stats"), run("check", "backup.db")]
        refused = [run("restore", "backup.db"), run("copy", "--to=sqlite:copy.db")]
        assert live_server.is_ready(server)
    assert [(each.returncode, each.stderr) for each in done] == [(0, "")] * 4
    assert [each.returncode for each in refused] == [3, 3]
    assert all(f"in use by another server process (pid {server.pid})" in each.stderr for each in refused)
    assert run("restore", "backup.db").returncode == 0
    with live_server.running(tmp_path, command=command):
        assert run("check").returncode == 0


# With etcd


@NEEDS_ETCD
def test_a_registry_moves_to_etcd_and_back(data: Path, tmp_path: Path, capsys: Output) -> None:
    wanted = Settings(client_certificates=True, user="registry")
    with EtcdCluster(tmp_path, wanted) as etcd:
        (tmp_path / "password").write_text(f"{etcd.access.password}\n")
        place = f"etcd:{','.join(etcd.endpoints)}"
        access = [f"--data-dir={data}", "--etcd-username=registry", f"--etcd-password-file={tmp_path / 'password'}"]
        access += [f"--etcd-cafile={etcd.access.ca}", f"--etcd-certfile={etcd.access.certificate}"]
        access += [f"--etcd-keyfile={etcd.access.key}"]
        for expected in ("Copied 3 objects", "Copied 0 objects"):
            assert main(["storage", "copy", f"--to={place}", *access], {}) == 0, capsys.readouterr().err
            text = capsys.readouterr().out
            assert text.startswith(expected)
            assert f"start the server with --etcd-servers={etcd.endpoints[0]}" in text
        assert main(["storage", "copy", f"--from={place}", f"--to=sqlite:{tmp_path / 'back.db'}", *access], {}) == 0
        fill(data / "registry.db", "sofia")
        etcd.etcdctl("put", f"{ETCD_PREFIX}{PREFIX}strange", "{}")
        assert main(["storage", "copy", f"--to={place}", *access], {}) == 3
    assert f"is not empty: it holds 1 object that the source has not ({PREFIX}strange)" in capsys.readouterr().err
    assert rows(tmp_path / "back.db") == rows(data / "registry.db")[:3]


@NEEDS_ETCD
def test_an_etcd_that_does_not_answer_is_reported_with_a_remedy(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr("clusterregistry.apiserver.storage.etcd.client.PATIENCE_SECONDS", 0.2)
    assert main(["storage", "copy", f"--data-dir={data}", "--to=etcd:127.0.0.1:1"], {}) == 3
    error = capsys.readouterr().err
    assert "etcd at 127.0.0.1:1" in error
    assert "What to do: " in error
    assert "Traceback" not in error
