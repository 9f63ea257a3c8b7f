from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from clusterregistry.apiserver.options import reference
from clusterregistry.apiserver.options.groups import Options
from clusterregistry.apiserver.options.unsupported import PLANNED
from tests.product import OPTIONS, resolve
from tools import reference as tool


def test_the_reference_page_is_up_to_date() -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == reference.markdown(OPTIONS), "run tools/reference.py"


def test_the_tool_writes_the_page_and_tells_when_it_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "PAGE", tmp_path / "reference" / "flags.md")
    assert tool.main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().err
    assert tool.main([]) == 0
    assert tool.main(["--check"]) == 0
    assert tool.PAGE.read_text(encoding="utf-8") == reference.markdown(OPTIONS)


@pytest.mark.parametrize("flag", [*OPTIONS.by_flag, *PLANNED])
def test_every_flag_is_in_the_reference(flag: str) -> None:
    assert f"`--{flag}`" in reference.markdown(OPTIONS)


def test_only_addresses_are_shown_as_addresses() -> None:
    shown = [flag for flag, option in OPTIONS.by_flag.items() if option.details.kind.metavar == "ADDRESS"]
    assert shown == [flag for flag in OPTIONS.by_flag if flag.endswith("-address")]


@pytest.mark.parametrize("flag", sorted(OPTIONS.by_flag))
def test_every_flag_is_in_the_help_with_its_default(flag: str) -> None:
    text = reference.help_text(OPTIONS, OPTIONS.by_group, 10_000)
    assert f"--{flag}" in text
    assert f"Default: {OPTIONS.by_flag[flag].default_text}.".replace("`", "") in text


@pytest.mark.parametrize("width", [60, 80, 110])
def test_the_help_keeps_to_its_width(width: int) -> None:
    assert max(map(len, reference.help_text(OPTIONS, OPTIONS.by_group, width).splitlines())) <= width


@pytest.mark.parametrize("example", reference.examples(OPTIONS))
def test_the_examples_can_be_typed(example: str) -> None:
    arguments = [each for each in example.split() if not each.startswith("--config")]
    assert resolve(arguments, {}).problems == ()


def test_every_group_is_a_part_of_the_options() -> None:
    assert sorted(OPTIONS.by_group) == sorted(field.name for field in dataclasses.fields(Options))
    count = sum(map(len, OPTIONS.by_group.values()))
    assert count == len(OPTIONS.by_flag), "two groups have an option of the same name"


@pytest.mark.parametrize("flag", sorted(OPTIONS.by_flag))
def test_help_is_a_sentence(flag: str) -> None:
    text = OPTIONS.by_flag[flag].details.help
    assert text[0].isupper()
    assert text.endswith(".")
