from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from clusterregistry.apiserver.options import reference
from clusterregistry.apiserver.options.groups import Options
from clusterregistry.apiserver.options.vocabulary import UNSUPPORTED
from clusterregistry.cli.options.help import help_by_group
from tests.product import OPTIONS, resolve
from tools import reference as tool


def test_the_reference_page_is_up_to_date() -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == reference.markdown(OPTIONS), "run tools/reference.py"


def test_the_tool_writes_the_page_and_reports_a_stale_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "PAGE", tmp_path / "reference" / "flags.md")
    assert tool.main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().err
    assert tool.main([]) == 0
    assert tool.main(["--check"]) == 0
    assert tool.PAGE.read_text(encoding="utf-8") == reference.markdown(OPTIONS)


def full_help(width: int) -> str:
    return help_by_group({OPTIONS.title(name): options for name, options in OPTIONS.by_group.items()}, width)


def test_every_flag_is_in_the_reference() -> None:
    page = reference.markdown(OPTIONS)
    assert [flag for flag in (*OPTIONS.by_flag, *UNSUPPORTED) if f"`--{flag}`" not in page] == []


def test_only_addresses_are_shown_as_addresses() -> None:
    shown = [flag for flag, option in OPTIONS.by_flag.items() if option.details.kind.metavar == "ADDRESS"]
    assert shown == [flag for flag in OPTIONS.by_flag if flag.endswith("-address")]


def test_every_flag_is_in_the_help_as_a_sentence_with_its_default() -> None:
    text = full_help(10_000)
    for flag, option in OPTIONS.by_flag.items():
        described = option.details.help
        assert described[0].isupper(), flag
        assert described.endswith("."), flag
        assert option.default_text, flag
        lines = f"{described} Default: {option.default_text}.".replace("`", "")
        assert re.search(rf"--{flag}\[?=.*\n      {re.escape(lines)}\n", text), flag


@pytest.mark.parametrize("width", [60, 80, 110])
def test_the_help_keeps_to_its_width(width: int) -> None:
    assert max(map(len, full_help(width).splitlines())) <= width


def test_the_examples_can_be_typed() -> None:
    examples = reference.examples(OPTIONS)
    assert len(examples) > 50
    for example in examples:
        arguments = [each for each in example.split() if not each.startswith("--config")]
        assert resolve(arguments, {}).problems == (), example


def test_every_group_is_a_part_of_the_options() -> None:
    assert list(OPTIONS.groups) == [field.name for field in dataclasses.fields(Options)]
    assert sum(map(len, OPTIONS.by_group.values())) == len(OPTIONS.by_flag), (
        "two groups have an option of the same name"
    )
