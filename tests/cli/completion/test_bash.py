"""The script for bash, in a real bash."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from clusterregistry.cli.completion import bash
from clusterregistry.cli.completion.model import Command
from clusterregistry.crinit import completion as crinit
from clusterregistry.registry.main import COMMANDS
from tests.cli.completion.terminals import Terminal
from tests.product import program as registry_program

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="bash is not installed")

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(tmp_path: Path) -> Complete:
    """What bash offers for a command line, with ``=`` cut off as bash does it, or not."""
    (tmp_path / "here").mkdir()
    for name in ("my tokens.csv", "tls.crt"):
        (tmp_path / "here" / name).touch()
    (tmp_path / "here" / "data").mkdir()

    def run(*words: str, program: Callable[[], Command] = registry_program, cut: bool = True) -> list[str]:
        described = program()
        (tmp_path / "script").write_text(bash.script(described))
        cut_up = [part for word in words for part in (_cut(word) if cut else [word])]
        quoted = " ".join(f"'{word}'" for word in (described.name, *cut_up))
        asking = f"source {tmp_path}/script; COMP_WORDS=({quoted}); COMP_CWORD={len(cut_up)}; _{described.name}; "
        done = subprocess.run(
            [str(BASH), "--norc", "-c", f'{asking} (( ${{#COMPREPLY[@]}} )) && printf "%s\\n" "${{COMPREPLY[@]}}"'],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path / "here",
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    return run


def _cut(word: str) -> list[str]:
    name, equals, value = word.partition("=")
    return [name, "=", *([value] if value else [])] if word.startswith("-") and equals else [word]


def test_commands_are_completed_at_each_place(complete: Complete) -> None:
    assert complete("sta") == ["standalone"]
    own = [each.name for each in COMMANDS]
    assert complete("") == ["standalone", "aggregated", "storage", *own, "version", "completion", "help"]
    assert complete("storage", "") == ["backup", "restore", "check", "stats", "copy", "migrate"]
    assert complete("help", "agg") == ["aggregated"]
    assert complete("completion", "") == ["bash", "zsh", "fish"]


def test_flags_are_completed_with_the_sign_that_their_value_needs(complete: Complete) -> None:
    assert complete("standalone", "--secure") == ["--secure-port="]
    assert complete("standalone", "--print") == ["--print-config"]
    assert complete("standalone", "--anonymous") == ["--anonymous-auth"]
    assert complete("storage", "backup", "--fo") == ["--force"]
    assert complete("storage", "copy", "--to") == ["--to="]
    assert complete("--ver") == ["--version"]


def test_a_command_offers_what_it_takes_and_no_more(complete: Complete) -> None:
    assert complete("standalone", "--token-auth") == ["--token-auth-file="]
    assert complete("aggregated", "--token-auth") == []
    assert complete("standalone", "--kubeconfig") == []
    assert complete("aggregated", "--kubeconfig") == ["--kubeconfig="]
    assert complete("storage", "stats", "--secure") == []


@pytest.mark.parametrize("cut", [True, False])
def test_values_are_completed_behind_the_sign_and_behind_a_space(complete: Complete, cut: bool) -> None:  # noqa: FBT001
    before = "" if cut else "--logging-format="
    assert complete("standalone", "--logging-format=", cut=cut) == [f"{before}text", f"{before}json"]
    assert complete("standalone", "--logging-format=j", cut=cut) == [f"{before}json"]
    assert complete("standalone", "--logging-format", "j", cut=cut) == ["json"]
    assert complete("standalone", "--secure-port=", cut=cut) == []


def test_a_boolean_has_its_values_behind_the_sign_only(complete: Complete) -> None:
    assert complete("standalone", "--anonymous-auth=") == ["true", "false"]
    assert complete("standalone", "--anonymous-auth", "--secure") == ["--secure-port="]


def test_files_and_directories_are_completed(complete: Complete) -> None:
    assert sorted(complete("standalone", "--token-auth-file=")) == ["data", "my tokens.csv", "tls.crt"]
    assert complete("standalone", "--data-dir=") == ["data"]
    assert complete("storage", "backup", "my") == ["my tokens.csv"]
    assert complete("storage", "copy", "my") == []


def test_a_list_is_completed_word_by_word(complete: Complete) -> None:
    assert complete("standalone", "--authorization-mode=We") == ["Webhook"]
    assert complete("standalone", "--authorization-mode=RBAC,We") == ["RBAC,Webhook"]


def test_a_flag_may_mean_something_else_behind_another_command(complete: Complete) -> None:
    assert complete("access", "check", "--output", "=", "") == ["table", "json", "yaml"]
    assert complete("storage", "stats", "--output", "=", "") == ["text", "json"]


def test_crinit_is_completed_too(complete: Complete) -> None:
    assert complete("", program=crinit.program) == ["standalone", "aggregated", "version", "completion"]
    assert complete("standalone", "in", program=crinit.program) == ["init"]
    assert complete("standalone", "init", "--api-server-service-type=No", program=crinit.program) == ["NodePort"]
    assert complete("standalone", "delete", "--keep", program=crinit.program) == ["--keep-data"]
    assert complete("standalone", "status", "--keep", program=crinit.program) == []


def test_a_tab_at_a_prompt_completes_the_line(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(bash.script(registry_program()))
    with Terminal(str(BASH), "--norc", "--noprofile", "-i") as terminal:
        terminal.type(f"source {tmp_path}/script\n")
        terminal.type("clusterregistry stan\t--secu\t8443")
        terminal.shows("clusterregistry standalone --secure-port=8443")


@pytest.mark.parametrize("program", [registry_program, crinit.program])
def test_bash_calls_the_script_for_the_program(program: Callable[[], Command], tmp_path: Path) -> None:
    name = program().name
    (tmp_path / "script").write_text(bash.script(program()))
    asked = f"source {tmp_path}/script; complete -p {name}"
    done = subprocess.run([str(BASH), "--norc", "-c", asked], check=True, capture_output=True, text=True)
    assert done.stdout == f"complete -F _{name} {name}\n"
