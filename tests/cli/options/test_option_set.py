"""The framework with options of its own: nothing in it is fixed to one program."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from clusterregistry.cli.options.field import OptionSet, option, options_of
from clusterregistry.cli.options.general import GeneralOptions
from clusterregistry.cli.options.help import help_text, reference_entry, short_help
from clusterregistry.cli.options.problems import Vocabulary
from clusterregistry.cli.options.sources import Reading, read_environment, read_flags, resolve
from clusterregistry.cli.options.value_types import BOOLEAN, INTEGER, TEXT, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOptions:
    """Loop."""

    count: int = option(3, kind=INTEGER, short="c", help="How many times. More takes longer.", example="-c=5")
    source: str = option("", kind=TEXT, flag="from", help="Where to begin.", default_shown="the start")
    quiet: bool = option(False, kind=BOOLEAN, help="Print nothing.", commands=frozenset({"run"}))
    rest: str = option("", kind=Kind(metavar="ARGS", parse=str, next_is_value=lambda _: True), help="Passed on.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LooperOptions:
    """Looper."""

    loop: LoopOptions = field(default_factory=LoopOptions)


OPTIONS = OptionSet(
    shape=LooperOptions,
    environment_prefix="LOOPER_",
    not_options=frozenset({"LOOPER_HOME"}),
    vocabulary=Vocabulary(synonyms={"n": "count"}, advice={"forever": "give a --count"}, unsupported={"fast": ""}),
)


def problems(*arguments: str, most_operands: int = 0) -> list[str]:
    return [str(each) for each in read_flags(OPTIONS, arguments, most_operands=most_operands).problems]


def test_a_program_has_its_own_prefix_and_its_own_exceptions() -> None:
    environ = {"LOOPER_COUNT": "7", "LOOPER_HOME": "x", "LOOPER_CUONT": "1", "CLUSTERREGISTRY_COUNT": "9"}
    resolved = resolve(OPTIONS, Reading(), environ)
    assert resolved.options.loop.count == 7
    assert resolved.sources == {"count": "environment LOOPER_COUNT"}
    assert [str(each) for each in resolved.problems] == ["unknown option LOOPER_CUONT (did you mean LOOPER_COUNT?)"]


def test_without_a_prefix_the_environment_gives_nothing() -> None:
    assert read_environment(OptionSet(shape=LoopOptions), {"COUNT": "1", "": "x"}) == Reading()


def test_a_group_alone_is_a_set_of_options_and_may_borrow_others() -> None:
    borrowed = tuple(each for each in options_of(GeneralOptions) if each.flag == "v")
    options = OptionSet(shape=LoopOptions, borrowed=borrowed)
    reading = read_flags(options, ["-v=2", "--from=a", "-c", "5"])
    assert [(each.flag, each.text, each.where) for each in reading.given] == [
        ("v", "2", "--v"),
        ("from", "a", "--from"),
        ("count", "5", "-c"),
    ]
    own = Reading([each for each in reading.given if each.flag != "v"])
    assert resolve(options, own, {}).options == LoopOptions(count=5, source="a")


def test_a_kind_says_whether_the_next_argument_is_its_value() -> None:
    assert [each.text for each in read_flags(OPTIONS, ["--rest", "--a=1"]).given] == ["--a=1"]
    assert problems("--from", "--count=1") == ["--from: needs a value (--from=TEXT)"]
    assert problems("-c") == ["-c: needs a value (-c=NUMBER)"]


@pytest.mark.parametrize(
    ("arguments", "operands", "expected"),
    [
        (["-n", "5", "a"], ["a"], ["unknown option -n (did you mean --count?)"]),
        (["--zzz", "a"], ["a"], ["unknown option --zzz"]),
        (["a", "--zzz", "b"], ["a"], ["unknown option --zzz"]),
        (["--quite", "a"], ["a"], ["unknown option --quite (did you mean --quiet?)"]),
        (["--forever"], [], ["unknown option --forever (give a --count)"]),
        (["--fast"], [], ["--fast is not supported yet"]),
        (["a", "--", "--b"], ["a", "--b"], ['unexpected argument "--b"']),
        (["--help=x"], [], ["unknown option --help"]),
    ],
)
def test_the_value_of_an_unknown_flag_is_skipped_and_no_operand_is(
    arguments: list[str], operands: list[str], expected: list[str]
) -> None:
    reading = read_flags(OPTIONS, arguments, most_operands=1)
    assert reading.operands == operands
    assert [str(each) for each in reading.problems] == expected


def test_help_and_reference_follow_from_the_declaration() -> None:
    count, source, *_ = OPTIONS.by_flag.values()
    assert help_text([count], 80).splitlines() == [
        "  -c, --count=NUMBER",
        "      How many times. More takes longer. Default: 3.",
    ]
    assert short_help([count], 80).endswith("      How many times. Default: 3.")
    assert reference_entry(count, remarks=["Environment: `LOOPER_COUNT`"]) == (
        "### `--count`\n\nHow many times. More takes longer.\n\n"
        "- Value: `NUMBER`\n- Default: `3`\n- Environment: `LOOPER_COUNT`\n- Example: `-c=5`\n"
    )
    assert "- Default: the start\n" in reference_entry(source)
