from __future__ import annotations

import logging
from pathlib import Path

import pytest

from clusterregistry.authn import tokenfile
from clusterregistry.authn.tokenfile import TokenFile, TokenFileError
from clusterregistry.authn.users import User


def load(tmp_path: Path, text: str) -> TokenFile:
    path = tmp_path / "tokens.csv"
    path.write_text(text, encoding="utf-8")
    return tokenfile.load(path)


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


def test_an_empty_file_knows_nobody(tmp_path: Path) -> None:
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
        tokenfile.load(tmp_path / "nothing.csv")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_bytes(b"a,\xff,1\n")
    with pytest.raises(TokenFileError, match="not UTF-8"):
        tokenfile.load(path)


def test_a_byte_order_mark_is_no_part_of_a_token(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_bytes(b"\xef\xbb\xbfa,jane,1\n")
    assert tokenfile.load(path).user_of("a") is not None
