from __future__ import annotations

import re

import pytest

from clusterregistry.cli.completion.model import SHELLS, Command, Flag, values_by_flag
from clusterregistry.crinit import completion as crinit
from clusterregistry.crinit.main import main as crinit_main
from clusterregistry.crinit.options import OPTIONS
from clusterregistry.registry.main import PROGRAM, main
from tests.product import OPTIONS as SERVER
from tests.product import program as registry_program

Output = pytest.CaptureFixture[str]
PROGRAMS = {"clusterregistry": main, "crinit": crinit_main}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_prints_a_script_for_every_shell(name: str, shell: str, capsys: Output) -> None:
    assert PROGRAMS[name](["completion", shell], {}) == 0
    assert f"{shell} completion for {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_explains_the_installation(name: str, capsys: Output) -> None:
    for arguments in (["completion", "--help"], ["completion", "bash", "-h"]):
        assert PROGRAMS[name](arguments, {}) == 0
        text = capsys.readouterr().out
        for shell in SHELLS:
            assert re.search(rf"{name} completion {shell}\b.*(>|source)|source <\({name} completion {shell}", text)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "for which shell? bash, zsh, fish"),
        (["zhs"], "did you mean zsh?"),
        (["/bin/bash"], "did you mean bash?"),
        (["powershell"], "there are bash, zsh, fish"),
        (["bash", "zsh"], 'unexpected argument "zsh"'),
    ],
)
def test_another_shell_is_a_mistake(arguments: list[str], complaint: str, capsys: Output) -> None:
    assert main(["completion", *arguments], {}) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert complaint in captured.err


def test_every_command_and_every_flag_is_described() -> None:
    described = registry_program()
    assert {each.name for each in described.commands} == {*PROGRAM.commands, "help"}
    known = {flag.name for _, command in described.walk() for flag in command.flags}
    assert {
        *SERVER.by_flag,
        *SERVER.command_line_only,
        "force",
        "full",
        "output",
        "from",
        "to",
        "merge",
        "short",
    } <= known
    deployed = {flag.name for _, command in crinit.program().walk() for flag in command.flags}
    assert set(OPTIONS.by_flag) <= deployed


def test_a_flag_with_a_value_behind_one_command_alone_is_a_bug() -> None:
    one, other = (Command(name=name, flags=(Flag(name="x", metavar=metavar),)) for name, metavar in _VALUE_OR_NONE)
    with pytest.raises(ValueError, match="unlike the rest"):
        values_by_flag(Command(name="p", commands=(one, other)))


_VALUE_OR_NONE = (("a", "FILE"), ("c", "BOOL"))
