"""Commands that a program lists, and loads when they are called."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import say
from clusterregistry.cli.options.field import OptionSet, option
from clusterregistry.cli.options.general import GeneralOptions
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import BOOLEAN
from clusterregistry.cli.program import Program
from clusterregistry.cli.subcommand import Given, Listed, Operands, Subcommand

Output = pytest.CaptureFixture[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetOptions(GeneralOptions):
    """Greetings."""

    loud: bool = option(False, kind=BOOLEAN, help="In capitals.")


def _greet(given: Given[GreetOptions]) -> int:
    (name,) = given.operands
    if name == "nobody":
        raise OperatorError("nobody is there", remedy="name a person")
    if name == "self":
        raise OptionsError([Problem("", "greets others only")])
    text = f"hello {name}"
    say(text.upper() if given.options.loud else text, ",".join(sorted(given.flags)))
    return exit_status.OK


def _load() -> Subcommand[GreetOptions]:
    return Subcommand(
        help="Greets a person.",
        options=OptionSet(shape=GreetOptions, program="play", environment_prefix="PLAY_"),
        operands=Operands(least=1, most=1, missing="whom?"),
        run=_greet,
    )


GREET = Listed(name="greet", summary="greet a person", load=_load)
PARTY = Listed(name="party", summary="be polite", help="Is polite.", commands=(GREET,))


def test_a_command_gets_options_operands_and_environment(capsys: Output) -> None:
    assert GREET.command("play")(["ann", "--loud"], {}) == 0
    assert capsys.readouterr().out == "HELLO ANN\nloud\n"
    assert GREET.command("play")(["ann"], {"PLAY_LOUD": "true"}) == 0
    assert capsys.readouterr().out == "HELLO ANN\n\n"


def test_every_mistake_is_named_at_once(capsys: Output) -> None:
    assert GREET.command("play")(["--nonsense", "--loud=maybe"], {}) == exit_status.USAGE
    said = capsys.readouterr().err
    assert "play greet: 3 problems" in said
    assert all(each in said for each in ("--nonsense", "maybe", "whom?"))


def test_failures_are_reports_with_an_exit_status(capsys: Output) -> None:
    assert GREET.command("play")(["nobody"], {}) == exit_status.STARTUP
    assert "What to do: name a person" in capsys.readouterr().err
    assert GREET.command("play")(["self"], {}) == exit_status.USAGE
    assert "greets others only" in capsys.readouterr().err


@pytest.mark.parametrize("is_service", [False, True])
def test_an_interrupt_is_a_failure_unless_the_command_is_a_service(*, is_service: bool) -> None:
    def interrupted() -> Subcommand[GreetOptions]:
        raise KeyboardInterrupt

    listed = Listed(name="greet", summary="greet a person", load=interrupted, is_service=is_service)
    program = Program(name="play", help="Plays.", commands={"greet": listed.command("play")})
    assert program.main(["greet", "ann"], {}) == (exit_status.OK if is_service else exit_status.INTERRUPTED)


def test_help_shows_the_flags_and_runs_nothing(capsys: Output) -> None:
    assert GREET.command("play")(["nobody", "--help"], {}) == 0
    said = capsys.readouterr().out
    assert said.startswith("Greets a person.")
    assert "--loud" in said


def test_a_command_may_have_commands_of_its_own(capsys: Output) -> None:
    party = PARTY.command("play")
    assert party(["greet", "ann"], {}) == 0
    assert party(["--help"], {}) == 0
    assert "play party COMMAND" in capsys.readouterr().out
    assert party(["sing"], {}) == exit_status.USAGE
    assert party(["greet"], {}) == exit_status.USAGE
    assert "play party greet: 1 problem" in capsys.readouterr().err


def test_completion_knows_all_of_it() -> None:
    assert [path for path, _ in PARTY.described().walk()] == ["", "/greet"]
    assert "loud" in {flag.name for flag in GREET.described().flags}
    assert GREET.described().takes_file
