"""The frame of every program, with a program of its own."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence

import pytest

from clusterregistry.apimachinery.operator_error import CertificateError, OperatorError
from clusterregistry.apiserver.storage.errors import StorageError, StorageUnavailable
from clusterregistry.cli import logs
from clusterregistry.cli.console import say
from clusterregistry.cli.options.general import GeneralOptions
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.program import Program, guard
from clusterregistry.crinit.errors import HostError, NotReady

Output = pytest.CaptureFixture[str]


def echo(arguments: Sequence[str], _: Mapping[str, str]) -> int:
    say(" ".join(arguments))
    return 7


LOOPER = Program(name="looper", help="The help.\n", commands={"run": echo, "version": echo})


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["run", "a", "--help"], "a --help"),
        (["--version", "--short"], "--short"),
        (["help", "run"], "--help"),
        (["help", "run", "all", "x"], "x --help=all"),
        (["--help", "run", "--all"], "--help=all"),
    ],
)
def test_a_command_gets_the_arguments_after_its_name(arguments: list[str], printed: str, capsys: Output) -> None:
    assert LOOPER.main(arguments, {}) == 7
    assert capsys.readouterr().out == f"{printed}\n"


@pytest.mark.parametrize("arguments", [["-h"], ["--help"], ["-help"], ["help"], ["--help=all"], ["help", "-h"]])
def test_help_is_printed(arguments: list[str], capsys: Output) -> None:
    assert LOOPER.main(arguments, {}) == 0
    assert capsys.readouterr().out == "The help.\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "looper: which command?\n\nThe help.\n"),
        (["rnu"], 'looper: unknown command "rnu". Did you mean run?\nCommands: run, version. See: looper --help\n'),
        (["help", "zzz"], 'looper: unknown command "zzz".\nCommands: run, version. See: looper --help\n'),
    ],
)
def test_a_wrong_command_is_reported(arguments: list[str], complaint: str, capsys: Output) -> None:
    assert LOOPER.main(arguments, {}) == 2
    assert capsys.readouterr() == ("", complaint)


def raising(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "status", "report"),
    [
        (
            OptionsError([Problem("--a", "is wrong", "give --b"), Problem("", "c")]),
            2,
            "looper: 2 problems with the command line:\n  --a: is wrong (give --b)\n  c\nSee: looper --help\n",
        ),
        (
            OperatorError("the disk is full", remedy="free some space"),
            3,
            "the disk is full\nWhat to do: free some space",
        ),
        (CertificateError("it expired", remedy="renew it"), 3, "it expired\nWhat to do: renew it"),
        (
            StorageUnavailable("etcd is away"),
            3,
            "etcd is away\nWhat to do: correct the cause and run the command again",
        ),
        (HostError("forbidden", remedy="ask", status=403), 3, "forbidden\nWhat to do: ask"),
        (NotReady("no pods", remedy="wait"), 3, "no pods\nWhat to do: wait"),
        (RuntimeError("boom"), 3, "unexpected RuntimeError: boom\nWhat to do: this is a bug in looper"),
    ],
)
def test_every_error_is_one_report_with_its_exit_status(
    error: Exception, status: int, report: str, capsys: Output
) -> None:
    assert guard("looper", lambda: raising(error)) == status
    said = capsys.readouterr().err
    assert report in said
    assert "Traceback" not in said


def test_storage_that_is_unavailable_is_both_a_storage_error_and_an_operator_error() -> None:
    error = StorageUnavailable("away", remedy="start it")
    assert isinstance(error, StorageError)
    assert (str(error), error.remedy) == ("away", "start it")


def test_an_interrupt_ends_a_program_quietly_with_0(capsys: Output) -> None:
    program = Program(name="looper", help="", commands={"run": lambda *_: raising(KeyboardInterrupt())})
    assert program.main(["run"], {}) == 0
    assert capsys.readouterr() == ("", "")


def test_with_a_json_log_every_report_is_a_json_line(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(logs, "_log_uncaught_exceptions", lambda: None)
    logs.configure(GeneralOptions(logging_format="json"))
    assert guard("looper", lambda: raising(OperatorError("the disk is full", remedy="free some space"))) == 3
    assert guard("looper", lambda: raising(RuntimeError("boom"))) == 3
    failed, bug = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert failed["msg"] == "the disk is full. What to do: free some space"
    assert (bug["err"], bug["level"]) == ("RuntimeError: boom", "critical")
