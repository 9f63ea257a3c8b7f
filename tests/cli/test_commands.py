from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from clusterregistry import __version__
from clusterregistry.apiserver.cli import server
from clusterregistry.apiserver.options.groups import by_group
from clusterregistry.cli.options.sources import read_flags
from clusterregistry.registry.main import PROGRAM, main
from tests.product import OPTIONS

Output = pytest.CaptureFixture[str]


def test_version_prints_the_version(capsys: Output) -> None:
    assert main(["version"], {}) == 0
    assert capsys.readouterr().out.startswith(f"clusterregistry v{__version__} (")


@pytest.mark.parametrize("arguments", [["version", "--short"], ["--version", "--short"], ["version", "--short=true"]])
def test_a_short_version_is_nothing_else(arguments: list[str], capsys: Output) -> None:
    assert main(arguments, {}) == 0
    assert capsys.readouterr().out == f"v{__version__}\n"


def test_version_names_all_that_it_does_not_know(capsys: Output) -> None:
    assert main(["version", "--long", "x"], {}) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert '"--long"' in captured.err
    assert '"x"' in captured.err


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"], ["help", "--help"]])
def test_help_names_every_command_and_exit_status(arguments: list[str], capsys: Output) -> None:
    assert main(arguments, {}) == 0
    text = capsys.readouterr().out
    for expected in (*PROGRAM.commands, "Exit status:", "  0  ", "  2  ", "  3  "):
        assert expected in text


@pytest.mark.parametrize("name", PROGRAM.commands)
def test_every_command_has_help_in_both_spellings(name: str, capsys: Output) -> None:
    assert main([name, "--help"], {}) == 0
    text = capsys.readouterr().out
    assert f"clusterregistry {name}" in text
    assert main(["help", name], {}) == 0
    assert capsys.readouterr().out == text


def test_help_comes_before_complaints(capsys: Output) -> None:
    assert main(["standalone", "--nonsense", "--help"], {}) == 0
    assert "--secure-port" in capsys.readouterr().out


def test_aggregated_has_its_own_flags_and_mistakes(capsys: Output) -> None:
    assert main(["help", "aggregated", "--all"], {}) == 0
    assert "--authentication-skip-lookup" in capsys.readouterr().out
    assert main(["aggregated", "--token-auth-file=/none", "--secure-port=0"], {"HOME": "/nowhere"}) == 2
    error = capsys.readouterr().err
    assert "clusterregistry aggregated: 4 problems" in error
    assert "--kubeconfig: must say how to reach the host cluster" in error


def help_of(capsys: Output, *arguments: str) -> str:
    assert main(arguments, {}) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", ["standalone", "aggregated"])
def test_help_is_short_at_first_and_has_every_flag_on_demand(name: str, capsys: Output) -> None:
    short, everything = help_of(capsys, name, "--help"), help_of(capsys, name, "--help=all")
    known = [
        f"--{each.flag}" for group in by_group(OPTIONS, aggregated=name == "aggregated").values() for each in group
    ]
    assert all(f"{flag}=" in everything or f"{flag}[=" in everything for flag in known)
    shown = re.findall(r"^  (?:-v, )?(--[a-z-]+)", short, re.MULTILINE)
    assert 10 <= len(shown) <= 16
    assert set(shown) <= {*known, "--print-config"}
    assert f"All {len(known)} flags: clusterregistry {name} --help=all" in short
    assert help_of(capsys, "help", name, "--all") == help_of(capsys, "help", name, "all") == everything


@pytest.mark.parametrize("flag", ["--help=everything", "-h=everything", "--help="])
def test_help_of_another_kind_is_a_mistake_that_names_both(flag: str, capsys: Output) -> None:
    assert main(["standalone", flag], {"HOME": "/nowhere"}) == 2
    error = capsys.readouterr().err
    assert "1 problem " in error
    assert "(--help is short, --help=all shows every flag)" in error


def test_help_shows_access_that_only_reads(capsys: Output) -> None:
    text = help_of(capsys, "standalone", "--help")
    assert '"viewers"' in text
    assert "docs/guides/access.md" in text
    assert "system:masters" not in text


def test_the_examples_of_the_server_commands_are_right(capsys: Output) -> None:
    for name in ("standalone", "aggregated"):
        examples = re.findall(rf"^  clusterregistry {name} (.*)$", help_of(capsys, name, "-h"), re.MULTILINE)
        assert len(examples) >= 3
        for example in examples:
            given = [each for each in shlex.split(example) if not each.startswith(("--config", "--print-config", "["))]
            assert read_flags(OPTIONS, given).problems == []


def test_the_module_runs_like_the_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "clusterregistry", "version", "--short"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"v{__version__}\n", "")


def test_answers_come_at_once_without_the_server_and_its_libraries() -> None:
    program = (
        "import sys; from clusterregistry.registry.main import main; main(['standalone', '--zzz'], {}); "
        "heavy = {'httptools', 'uvloop', 'cryptography', 'yaml', 'clusterregistry.apiserver.lifecycle'}; "
        "heavy &= set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_server_starts_without_the_parts_that_few_servers_use_or_that_can_wait() -> None:
    program = (
        "import sys; import clusterregistry.apiserver.lifecycle; "
        "heavy = {'yaml', 'hpack', 'cryptography', 'google.protobuf', 'prometheus_client', 'email', 'tempfile', "
        "'clusterregistry.apiserver.audit.trail', 'clusterregistry.apiserver.discovery', "
        "'clusterregistry.apiserver.delegated_auth', "
        "'clusterregistry.apiserver.webhooks', 'clusterregistry.apiserver.authn.oidc.issuer'}; "
        "heavy &= set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_all_problems_with_options_are_printed_and_nothing_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def must_not_run(*_: object) -> int:
        raise AssertionError("started")

    monkeypatch.setattr(server.ServerCommand, "_serve", must_not_run)
    arguments = ["standalone", "--secure-prot=1", "--secure-port=0", "--authorization-always-allow"]
    assert main(arguments, {"HOME": "/nowhere", "CLUSTERREGISTRY_V": "x"}) == 2
    error = capsys.readouterr().err
    assert "4 problems" in error
    for expected in (
        "--secure-port?",
        "0 is not a port",
        "--authorization-always-allow is not supported yet",
        "CLUSTERREGISTRY_V: ",
    ):
        assert expected in error
