"""A configuration file that cannot be read as YAML: the message says where, what is wrong, and what to write."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.product import resolve


def problem(tmp_path: Path, text: str) -> str:
    path = tmp_path / "registry.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    (found,) = resolve([f"--config={path}"], {}).problems
    return str(found).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "secure-port: 8443\n\tbind-address: 0.0.0.0\n",
            (
                'this is not YAML: line 2, column 1: a tab where YAML wants spaces: "\\tbind-address: 0.0.0.0" '
                "(indent with spaces; options need no indent at all)"
            ),
        ),
        (
            "secure-port: 8443\nbind-address 0.0.0.0\n",
            (
                'this is not YAML: line 2, column 1: a colon is missing: "bind-address 0.0.0.0" '
                "(write an option as `bind-address: 0.0.0.0`)"
            ),
        ),
        (
            "secure-port = 8443\nbind-address = 0.0.0.0\ndata-dir: x\n",
            (
                'this is not YAML: line 1, column 1: a colon is missing: "secure-port = 8443" '
                "(write an option as `secure-port: 8443`)"
            ),
        ),
        (
            "[registry]\nport=1\n",
            (
                "this is not YAML: line 2, column 1: this does not belong to the lines before it: "
                '"port=1" (write an option as `port: 1`)'
            ),
        ),
        (
            "tls-san: [a, ",
            (
                'this is not YAML: line 1, column 14: the file ends too early: "tls-san: [a, " '
                "(is a value or a bracket missing?)"
            ),
        ),
        (
            "data-dir: C: drive\n",
            (
                'this is not YAML: line 1, column 12: a second colon in one line: "data-dir: C: drive" '
                "(put the value in quotes, or begin a new line)"
            ),
        ),
        (
            "secure-port: 8443\n  bind-address: 0.0.0.0\n",
            (
                "this is not YAML: line 2, column 15: this line is indented further than the one before it: "
                '"  bind-address: 0.0.0.0" (begin every option at the start of its line)'
            ),
        ),
        (
            'secure-port: 8443\ndata-dir: "/var/lib\nv: 1\n',
            (
                'this is not YAML: line 2, column 11: a quote is opened and never closed: "data-dir: \\"/var/lib" '
                "(close the quote at the end of the value)"
            ),
        ),
        (
            "authorization-mode: [RBAC, Webhook\nv: 1\n",
            (
                "this is not YAML: line 1, column 21: a bracket is opened and not closed: "
                '"authorization-mode: [RBAC, Webhook" (close it with ])'
            ),
        ),
        (
            '{\n  "secure-port": 8443\n  "v": 1\n}\n',
            (
                'this is not YAML: line 3, column 6: a comma is missing before this: "  \\"v\\": 1" '
                "(this looks like JSON: check commas, quotes and braces)"
            ),
        ),
        (
            "data-dir: @home\n",
            (
                'this is not YAML: line 1, column 11: a value cannot begin with @: "data-dir: @home" '
                "(put the value in quotes)"
            ),
        ),
        (
            "data-dir: *home\n",
            (
                'this is not YAML: line 1, column 11: a value cannot begin with *: "data-dir: *home" '
                "(put the value in quotes)"
            ),
        ),
        (
            "v: 1\n---\nv: 2\n",
            'this is not YAML: line 2, column 1: a second document begins: "---" (keep one, and remove the line ---)',
        ),
        (
            "v: 1\ndata-dir: \x07\n",
            (
                'this is not YAML: line 2, column 11: a character that is not text, U+0007: "data-dir: \\u0007" '
                "(remove it; was the file made by a program that writes no plain text?)"
            ),
        ),
    ],
)
def test_what_is_wrong_is_said_in_plain_words_with_the_line(tmp_path: Path, text: str, expected: str) -> None:
    assert problem(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("--secure-port=8443\n--v=1\n", "(write an option as `secure-port: 8443`)"),
        ("secure-port=8443\n", "(write an option as `secure-port: 8443`)"),
        ("- secure-port\n", "(this is a list: write options without the dash before them)"),
    ],
)
def test_a_file_without_a_mapping_says_how_to_write_one(tmp_path: Path, text: str, hint: str) -> None:
    assert problem(tmp_path, text).endswith(hint)


@pytest.mark.parametrize(
    "text", ["a: b: " + "x" * 100_000, "{" * 5000, "a: '" + "\n" * 5000, "\x00" * 5000, "? " * 999]
)
def test_the_message_is_short_whatever_the_file_is(tmp_path: Path, text: str) -> None:
    said = problem(tmp_path, text)
    assert len(said) < 400
    assert "\n" not in said


def test_no_text_makes_the_explanation_fail(tmp_path: Path) -> None:
    pieces = [
        "a",
        ": ",
        "\n",
        "\t",
        " ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        '"',
        "'",
        "*",
        "&",
        "%",
        "@",
        "|",
        ">",
        "#",
        "---",
        "?",
    ]
    chosen = random.Random(7)
    path = tmp_path / "registry.yaml"
    for _ in range(600):
        path.write_text("".join(chosen.choices(pieces, k=chosen.randrange(1, 14))), encoding="utf-8", newline="")
        for found in resolve([f"--config={path}"], {}).problems:
            assert len(str(found)) < 500
            assert "\n" not in str(found)
