"""The log's file: appending, rotating, and what happens when the disk does not play along."""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clusterregistry.apiserver.audit.backend import LogFile, StandardOutput
from clusterregistry.apiserver.audit.settings import Rotation

NOON = datetime(2030, 1, 2, 12, tzinfo=UTC)
LINE = b"0123456789abcde\n"


class Clock:
    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> float:
        return self.time.timestamp()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "audit.log"


def append(file: LogFile | StandardOutput, *lines: bytes) -> None:
    given = list(lines)
    file.append(given)
    assert given == []


def backups(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir() if each != path)


def test_a_file_is_made_with_its_directory_and_readable_by_nobody_else(path: Path) -> None:
    file = LogFile(path, Rotation())
    append(file, LINE, LINE)
    append(file, LINE)
    file.close()
    assert path.read_bytes() == LINE * 3
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_what_was_there_stays(path: Path) -> None:
    append(LogFile(path, Rotation()), LINE)
    append(LogFile(path, Rotation()), LINE)
    assert path.read_bytes() == LINE * 2


def test_a_line_that_broke_off_does_not_swallow_the_next(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"kind": "Ev')
    append(LogFile(path, Rotation()), LINE)
    assert path.read_bytes() == b'{"kind": "Ev\n' + LINE


def test_a_full_file_is_renamed_as_kube_apiserver_does(path: Path) -> None:
    file = LogFile(path, Rotation(most_bytes=3 * len(LINE)), now=Clock())
    append(file, *[LINE] * 4)
    assert backups(path) == ["audit-2030-01-02T12-00-00.000.log"]
    assert path.read_bytes() == LINE
    assert (path.parent / backups(path)[0]).read_bytes() == LINE * 3


def test_files_that_fill_up_in_the_same_moment_are_all_kept(path: Path) -> None:
    file = LogFile(path, Rotation(most_bytes=len(LINE)), now=Clock())
    append(file, *[LINE] * 4)
    assert backups(path) == [f"audit-2030-01-02T12-00-00.00{number}.log" for number in range(3)]


def test_a_line_larger_than_a_file_has_one_for_itself(path: Path) -> None:
    file = LogFile(path, Rotation(most_bytes=10), now=Clock())
    append(file, b"a\n", LINE, b"b\n")
    assert path.read_bytes() == b"b\n"
    assert [(path.parent / name).read_bytes() for name in backups(path)] == [b"a\n", LINE]


def test_only_so_many_old_files_are_kept_and_others_are_left_alone(path: Path) -> None:
    clock = Clock()
    path.parent.mkdir()
    others = ["audit-2030-13-41T12-00-00.000.log", "audit-notes.log", "other-2020-01-02T12-00-00.000.log"]
    for name in others:
        (path.parent / name).touch()
    file = LogFile(path, Rotation(most_bytes=len(LINE), most_backups=2), now=clock)
    for _ in range(5):
        append(file, LINE)
        clock.time += timedelta(seconds=1)
    kept = [f"audit-2030-01-02T12-00-0{second}.000.log" for second in (3, 4)]
    assert backups(path) == sorted([*others, *kept])


def test_old_files_go_by_their_age(path: Path) -> None:
    clock = Clock()
    file = LogFile(path, Rotation(most_bytes=len(LINE), most_days=2), now=clock)
    for _ in range(5):
        append(file, LINE)
        clock.time += timedelta(days=1)
    assert backups(path) == [f"audit-2030-01-0{day}T12-00-00.000.log" for day in (4, 5, 6)]


def test_an_old_file_that_cannot_be_removed_is_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (path.parent / "audit-2020-01-02T12-00-00.000.log").mkdir(parents=True)
    append(LogFile(path, Rotation(most_bytes=len(LINE), most_days=1), now=Clock()), LINE, LINE)
    assert "an old audit log cannot be removed" in caplog.text
    assert path.read_bytes() == LINE


def test_a_file_that_somebody_moved_or_removed_is_made_anew(path: Path) -> None:
    file = LogFile(path, Rotation())
    append(file, LINE)
    path.rename(path.with_suffix(".1"))
    append(file, LINE)
    path.unlink()
    append(file, LINE)
    path.unlink()
    path.parent.joinpath("audit.1").unlink()
    path.parent.rmdir()
    append(file, LINE)
    assert path.read_bytes() == LINE


def test_a_directory_that_became_a_file_is_an_error_until_it_is_gone(path: Path) -> None:
    file = LogFile(path, Rotation())
    append(file, LINE)
    path.unlink()
    path.parent.rmdir()
    path.parent.write_bytes(b"")
    lines = [LINE]
    with pytest.raises(OSError, match=r"exists|Not a directory"):
        file.append(lines)
    assert lines == [LINE]
    path.parent.unlink()
    file.append(lines)
    assert path.read_bytes() == LINE


def test_a_file_that_cannot_be_renamed_grows_and_nothing_is_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = LogFile(path, Rotation(most_bytes=len(LINE)), now=Clock())
    monkeypatch.setattr(file, "_backup_path", lambda: path.parent / "absent" / "x")
    append(file, LINE, LINE)
    append(file, LINE)
    assert path.read_bytes() == LINE * 3
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    monkeypatch.undo()
    append(file, LINE)
    assert path.read_bytes() == LINE


def test_what_is_no_regular_file_is_never_renamed() -> None:
    file = LogFile(Path("/dev/null"), Rotation(most_bytes=1))
    append(file, LINE, LINE)
    file.close()
    assert Path("/dev/null").is_char_device()


def test_a_full_disk_is_an_error_and_leaves_the_lines() -> None:
    lines = [LINE, LINE]
    with pytest.raises(OSError, match="No space left"):
        LogFile(Path("/dev/full"), Rotation()).append(lines)
    assert lines == [LINE, LINE]


def test_what_was_half_written_is_taken_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = LogFile(path, Rotation())
    append(file, LINE)
    write, room = os.write, [5]

    def small(descriptor: int, data: bytes) -> int:
        if not room:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[: room.pop()])

    monkeypatch.setattr(os, "write", small)
    lines = [LINE]
    with pytest.raises(OSError, match="No space left"):
        file.append(lines)
    assert path.read_bytes() == LINE
    monkeypatch.undo()
    file.append(lines)
    assert path.read_bytes() == LINE * 2


def test_a_check_finds_what_would_fail_later(path: Path, tmp_path: Path) -> None:
    LogFile(path, Rotation()).check()
    assert path.read_bytes() == b""
    with pytest.raises(OSError, match="directory"):
        LogFile(tmp_path, Rotation()).check()
    with pytest.raises(OSError, match=r"exists|Not a directory"):
        LogFile(path / "below", Rotation()).check()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device"):
        LogFile(tmp_path / "pipe", Rotation()).check()


def test_standard_output_gets_whole_lines(capfd: pytest.CaptureFixture[str]) -> None:
    output = StandardOutput()
    append(output, LINE, LINE)
    output.close()
    assert capfd.readouterr().out == LINE.decode() * 2


def test_standard_output_goes_on_where_it_stopped(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    append(StandardOutput(), LINE, LINE)
    monkeypatch.undo()
    assert capfd.readouterr().out == LINE.decode() * 2
