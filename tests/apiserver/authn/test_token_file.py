from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from clusterregistry.apiserver.authn.token_file import (
    LOOK_SECONDS,
    MAX_BYTES,
    SETTLE_SECONDS,
    TokenFile,
    TokenFileError,
)
from clusterregistry.apiserver.authn.user import User


def load(tmp_path: Path, text: str) -> TokenFile:
    path = tmp_path / "tokens.csv"
    path.write_text(text, encoding="utf-8")
    return TokenFile(path)


def test_a_line_is_token_user_uid_and_groups(tmp_path: Path) -> None:
    tokens = load(tmp_path, 'secret,jane,u-1,"devs,ops"\n')
    assert tokens.user_of("secret") == User("jane", "u-1", ("devs", "ops", "system:authenticated"))
    assert tokens.user_of("other") is None


def test_groups_may_be_missing(tmp_path: Path) -> None:
    tokens = load(tmp_path, "a,nobody,u-2\nb,somebody,u-3,\n")
    assert tokens.user_of("a") == User("nobody", "u-2", ("system:authenticated",))
    assert tokens.user_of("b") == User("somebody", "u-3", ("system:authenticated",))


def test_one_group_needs_no_quotes_and_more_columns_are_ignored(tmp_path: Path) -> None:
    user = load(tmp_path, "a,jane,1,system:masters,more,columns\r\n").user_of("a")
    assert user is not None
    assert user.groups == ("system:masters", "system:authenticated")


def test_blank_lines_are_skipped(tmp_path: Path) -> None:
    assert len(load(tmp_path, "\n\na,jane,1\n\nb,joe,2\n\n")) == 2


def test_an_empty_file_has_no_users(tmp_path: Path) -> None:
    assert len(load(tmp_path, "")) == 0


def test_an_empty_token_is_skipped_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        tokens = load(tmp_path, ",jane,1\nb,joe,2\n")
    assert len(tokens) == 1
    assert "tokens.csv:1" in caplog.text


def test_of_a_repeated_token_the_last_line_counts_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        user = load(tmp_path, "a,jane,1\na,joe,2\n").user_of("a")
    assert user is not None
    assert user.name == "joe"
    assert "tokens.csv:2" in caplog.text
    assert "a,joe" not in caplog.text


@pytest.mark.parametrize(
    ("text", "line"),
    [("a,jane,1\nb,joe\n", 2), ("only\n", 1), ('a,jane,1\n\n"b"x,joe,2\n', 3), ('"a,jane,1\n', 1)],
)
def test_a_bad_line_is_named_with_its_file_and_number(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(TokenFileError, match=rf"tokens\.csv:{line}: "):
        load(tmp_path, text)


def test_an_error_does_not_tell_tokens(tmp_path: Path) -> None:
    with pytest.raises(TokenFileError) as raised:
        load(tmp_path, "s3cret,jane\n")
    assert "s3cret" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenFileError, match=r"nothing\.csv: No such file"):
        TokenFile(tmp_path / "nothing.csv")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_bytes(b"a,\xff,1\n")
    with pytest.raises(TokenFileError, match=r"tokens\.csv:1: not UTF-8"):
        TokenFile(path)


def test_a_byte_order_mark_is_no_part_of_a_token(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_bytes(b"\xef\xbb\xbfa,jane,1\n")
    assert TokenFile(path).user_of("a") is not None


def test_a_file_that_is_too_large_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    with pytest.raises(TokenFileError, match=r"tokens\.csv: larger than 10 MiB"):
        load(tmp_path, "x" * (MAX_BYTES + 1))


# Files that change


class Changing:
    """A token file and those who know its users."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / "tokens.csv"
        self.write("a,jane,1\n")
        self.tokens = TokenFile(self.path)

    def write(self, text: str | bytes) -> None:
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.path.chmod(0o600)

    def settle(self) -> None:
        """Looks until nothing changes any more."""
        while self.tokens.look():
            pass

    def known(self) -> dict[str, str]:
        users = {token: self.tokens.user_of(token) for token in "ab"}
        return {token: user.name for token, user in users.items() if user is not None}


@pytest.fixture
def changing(tmp_path: Path) -> Changing:
    return Changing(tmp_path)


def test_a_file_that_is_written_anew_is_read_again(changing: Changing, caplog: pytest.LogCaptureFixture) -> None:
    changing.write("b,joe,2\n")
    with caplog.at_level(logging.INFO):
        changing.settle()
    assert changing.known() == {"b": "joe"}
    assert caplog.messages == [f"{changing.path} was read again: 1 tokens (new: 1, gone: 1)"]


def test_a_file_that_is_renamed_into_place_is_read_again(changing: Changing) -> None:
    new = changing.path.with_suffix(".new")
    new.write_text("b,joe,2\n")
    new.replace(changing.path)
    changing.settle()
    assert changing.known() == {"b": "joe"}


def test_a_file_behind_links_that_kubernetes_switches_over_is_read_again(tmp_path: Path) -> None:
    for name, text in (("..1", "a,jane,1\n"), ("..2", "b,joe,2\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tokens.csv").write_text(text)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "tokens.csv").symlink_to("..data/tokens.csv")
    tokens = TokenFile(tmp_path / "tokens.csv")
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").replace(tmp_path / "..data")
    while tokens.look():
        pass
    assert tokens.user_of("a") is None
    assert tokens.user_of("b") is not None


def test_a_change_that_keeps_size_and_time_is_noticed(changing: Changing) -> None:
    status = changing.path.stat()
    changing.write("b,jane,1\n")
    os.utime(changing.path, ns=(status.st_atime_ns, status.st_mtime_ns))
    changing.settle()
    assert changing.known() == {"b": "jane"}


def test_a_file_that_is_half_written_is_left_alone(changing: Changing) -> None:
    changing.write("")
    assert changing.tokens.look()
    changing.write("a,jane,1\nb,j")
    assert changing.tokens.look()
    changing.write("a,jane,1\nb,joe,2\n")
    assert changing.tokens.look()
    assert changing.known() == {"a": "jane"}
    assert not changing.tokens.look()
    assert changing.known() == {"a": "jane", "b": "joe"}


def test_a_file_that_is_written_again_and_again_is_left_alone_however_it_is_met(changing: Changing) -> None:
    for second in range(1, 5):
        changing.write("b,joe,2,edit")  # half of a line, whose group is to be `edit-some`
        os.utime(changing.path, (second, second))
        assert changing.tokens.look()
    assert changing.known() == {"a": "jane"}
    assert not changing.tokens.look()
    assert changing.known() == {"b": "joe"}


def test_a_file_whose_time_alone_changes_is_not_read_again(
    changing: Changing, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for second in (1, 1, 2, 2):
            os.utime(changing.path, (second, second))
            assert not changing.tokens.look()
    assert caplog.messages == []


def test_an_emptied_file_takes_all_tokens_away(changing: Changing) -> None:
    changing.write("")
    changing.settle()
    assert changing.known() == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("b,joe,2\nc,broken\n", ":2: a line needs at least 3 columns"),
        (b"b,joe,2\nc,\xff,3\n", ":2: not UTF-8"),
        ("b,joe,2\n" + "x" * MAX_BYTES, ": larger than 10 MiB"),
    ],
    ids=["columns", "text", "size"],
)
def test_content_that_cannot_be_used_keeps_the_former_and_is_logged_once(
    changing: Changing, caplog: pytest.LogCaptureFixture, content: str | bytes, message: str
) -> None:
    changing.write(content)
    for _ in range(3):
        changing.settle()
    assert changing.known() == {"a": "jane"}
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert f"{changing.path}{message}" in record.getMessage()
    assert "the former tokens stay in use. What to do: correct the file that --token-auth-file" in record.getMessage()
    assert (changing.tokens.reloads.taken, changing.tokens.reloads.failed) == (0, 1)
    changing.write("b,joe,2\n")
    changing.settle()
    assert changing.known() == {"b": "joe"}
    assert (changing.tokens.reloads.taken, changing.tokens.reloads.failed) == (1, 1)


def test_a_file_that_is_missing_for_a_moment_changes_nothing(
    changing: Changing, caplog: pytest.LogCaptureFixture
) -> None:
    changing.path.unlink()
    assert changing.tokens.look()
    changing.write("a,jane,1\n")
    assert not changing.tokens.look()
    assert changing.known() == {"a": "jane"}
    assert caplog.records == []


def test_a_file_that_stays_away_is_logged_once_and_read_when_it_is_back(
    changing: Changing, caplog: pytest.LogCaptureFixture
) -> None:
    changing.path.unlink()
    for _ in range(3):
        changing.settle()
    assert changing.known() == {"a": "jane"}
    assert [record.getMessage().partition(": ")[2][:25] for record in caplog.records] == ["No such file or directory"]
    changing.write("b,joe,2\n")
    changing.settle()
    assert changing.known() == {"b": "joe"}


@pytest.mark.parametrize(("make", "message"), [(os.mkdir, "Is a directory"), (os.mkfifo, "not a regular file")])
def test_what_takes_the_place_of_the_file_and_is_none_keeps_the_former(
    changing: Changing, caplog: pytest.LogCaptureFixture, make: Callable[[Path], None], message: str
) -> None:
    changing.path.unlink()
    make(changing.path)
    changing.settle()
    assert changing.known() == {"a": "jane"}
    assert f"tokens.csv: {message}: the former tokens stay in use" in caplog.text


def test_the_file_is_looked_at_every_few_seconds_and_soon_again_when_it_changes(changing: Changing) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            changing.write("b,joe,2\n")
        if len(slept) == 5:
            raise asyncio.CancelledError

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(changing.tokens.follow(sleep=sleep))
    assert slept == [LOOK_SECONDS, LOOK_SECONDS, SETTLE_SECONDS, LOOK_SECONDS, LOOK_SECONDS]
    assert changing.known() == {"b": "joe"}


def test_a_failure_that_was_not_foreseen_does_not_end_the_looking(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(TokenFile):
        def look(self) -> bool:
            raise ZeroDivisionError

    path = tmp_path / "tokens.csv"
    path.touch(0o600)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise asyncio.CancelledError

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(Failing(path).follow(sleep=sleep))
    assert slept == [LOOK_SECONDS] * 3
    assert caplog.messages == [f"{path} could not be reloaded"] * 2


def test_a_pipe_is_read_once() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a,jane,1\n")
    os.close(writing)
    try:
        tokens = TokenFile(Path(f"/dev/fd/{reading}"))
        asyncio.run(tokens.follow())
    finally:
        os.close(reading)
    assert tokens.user_of("a") is not None


# Who else may read the file


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_that_others_may_open_gives_a_warning_with_the_command_to_type(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int
) -> None:
    path = tmp_path / "my tokens.csv"
    path.touch()
    path.chmod(mode)
    TokenFile(path)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert f"(mode {mode:04o})" in record.getMessage()
    assert record.getMessage().endswith(f"What to do: chmod 600 '{path}'")


def test_a_file_for_its_owner_alone_gives_no_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "tokens.csv"
    path.touch(0o600)
    TokenFile(path)
    assert caplog.records == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize(("mode", "warnings"), [(0o440, 0), (0o640, 0), (0o660, 1), (0o644, 1)])
def test_the_group_of_a_file_that_another_user_owns_may_read_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warnings: int
) -> None:
    path = tmp_path / "tokens.csv"
    path.touch()
    path.chmod(mode)
    os.chown(path, 65534, 65534)
    TokenFile(path)
    assert caplog.text.count("chmod 640") == len(caplog.records) == warnings


def test_new_content_that_others_may_read_gives_the_warning_too(
    changing: Changing, caplog: pytest.LogCaptureFixture
) -> None:
    changing.write("b,joe,2\n")
    changing.path.chmod(0o644)
    changing.settle()
    assert "chmod 600" in caplog.text
