"""A folder of credentials: what leads out of it, blocks or has no end is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clusterregistry.controllers.access.credential_folder import (
    MAX_BYTES,
    CredentialFolder,
    FileMissingError,
    FolderError,
    is_plain_name,
)


@pytest.fixture
def folder(tmp_path: Path) -> CredentialFolder:
    (tmp_path / "keys").mkdir()
    (tmp_path / "outside.token").write_text("outside")
    return CredentialFolder(tmp_path / "keys")


def test_a_file_and_its_version(folder: CredentialFolder) -> None:
    file = folder.directory / "a.token"
    file.write_text("one")
    found = folder.read("a.token")
    assert found.content == b"one"
    assert folder.version("a.token") == found.version
    file.with_suffix(".new").write_text("two")
    file.with_suffix(".new").rename(file)
    assert folder.version("a.token") != found.version
    assert "one" not in repr(found)


def test_a_mounted_secret_consists_of_links(folder: CredentialFolder) -> None:
    def write(generation: str, token: str) -> None:
        (folder.directory / generation).mkdir()
        (folder.directory / generation / "a.token").write_text(token)
        (folder.directory / "..new").symlink_to(generation)
        (folder.directory / "..new").rename(folder.directory / "..data")

    write("..2026_01", "one")
    (folder.directory / "a.token").symlink_to("..data/a.token")
    first = folder.read("a.token")
    write("..2026_02", "two")
    assert (first.content, folder.read("a.token").content) == (b"one", b"two")
    assert folder.version("a.token") != first.version


def test_the_folder_itself_may_be_a_link(folder: CredentialFolder, tmp_path: Path) -> None:
    (folder.directory / "a.token").write_text("one")
    (tmp_path / "linked").symlink_to(folder.directory)
    assert CredentialFolder(tmp_path / "linked").read("a.token").content == b"one"


ODD_NAMES = ("../outside.token", "a/../../outside.token", "/etc/passwd", ".", "..", "", ".hidden", "a\0b", "a\n")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_no_name_is_a_path(folder: CredentialFolder, name: str) -> None:
    assert not is_plain_name(name)
    with pytest.raises(FolderError, match="no plain file name"):
        folder.read(name)


@pytest.mark.parametrize("target", ["../outside.token", "/dev/zero", "/proc/self/environ", "..", "."])
def test_no_link_leads_out(folder: CredentialFolder, target: str) -> None:
    (folder.directory / "a.token").symlink_to(target)
    with pytest.raises(FolderError, match="leads out"):
        folder.read("a.token")


def test_no_folder_inside_leads_out(folder: CredentialFolder, tmp_path: Path) -> None:
    (folder.directory / "..data").symlink_to(tmp_path)
    (folder.directory / "a.token").symlink_to("..data/outside.token")
    with pytest.raises(FolderError, match="leads out"):
        folder.read("a.token")


def test_a_link_that_appears_while_a_path_is_opened_is_not_followed(
    folder: CredentialFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.directory / "a.token").symlink_to(tmp_path / "outside.token")
    # As if the link had been a file when it was resolved.
    monkeypatch.setattr(os.path, "realpath", str)
    with pytest.raises(FolderError, match="is a link"):
        folder.read("a.token")


@pytest.mark.parametrize("kind", ["fifo", "directory", "empty", "large", "loop", "dangling"])
def test_what_is_no_file_of_a_credential(folder: CredentialFolder, kind: str) -> None:
    file = folder.directory / "a.token"
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    elif kind == "empty":
        file.touch()
    elif kind == "large":
        with file.open("wb") as opened:
            opened.truncate(60 << 20)
    else:
        file.symlink_to("a.token" if kind == "loop" else "missing")
    with pytest.raises(FolderError):
        folder.read("a.token")


def test_the_largest_file(folder: CredentialFolder) -> None:
    (folder.directory / "a.token").write_bytes(b"x" * MAX_BYTES)
    assert len(folder.read("a.token").content) == MAX_BYTES


def test_a_missing_file_and_a_missing_folder(folder: CredentialFolder, tmp_path: Path) -> None:
    with pytest.raises(FileMissingError, match="there is no file"):
        folder.read("a.token")
    with pytest.raises(FileMissingError):
        CredentialFolder(tmp_path / "missing").read("a.token")
    assert folder.version("a.token") == ()


def test_no_descriptor_is_left_open(folder: CredentialFolder) -> None:
    (folder.directory / "a.token").write_text("one")
    (folder.directory / "b.token").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        folder.read("a.token")
        with pytest.raises(FolderError):
            folder.read("b.token")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
