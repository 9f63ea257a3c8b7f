"""The harness fails where the server, or the harness itself, fails: it never passes by running nothing."""

import os
import pathlib
import sys

import pytest

from tests.conformance.conftest import ServerFor
from tools import conformance, live_server
from tools.processes import ProcessError

ENDS_AT_ONCE = [sys.executable, "-c", "print('no such flag'); raise SystemExit(2)"]


def test_a_server_that_ends_at_once_is_reported_with_its_log(tmp_path: pathlib.Path) -> None:
    with (
        pytest.raises(ProcessError, match=r"status 2:\nno such flag"),
        live_server.running(tmp_path, command=ENDS_AT_ONCE),
    ):
        pass


def test_the_server_is_ended_with_the_block(tmp_path: pathlib.Path) -> None:
    with live_server.running(tmp_path) as server:
        os.kill(server.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_a_difference_is_a_failure(server_for: ServerFor, tmp_path: pathlib.Path) -> None:
    transcript = tmp_path / "wrong.json"
    transcript.write_text(
        '{"area": "get", "name": "wrong", "commands": [{"args": ["get", "clusters"], '
        '"expect": {"code": 0, "stdout": "something else", "stderr": ""}}]}'
    )
    outcome = conformance.run_kubectl(server_for("replay"), release="1.36", transcripts=[transcript])
    assert (outcome.passed, outcome.failed) == (0, 1)
    assert "+No resources found" in outcome.output


def test_a_runner_that_falls_over_is_a_failure() -> None:
    assert conformance.outcome(["replay.py", "--no-such-flag"]).failed == 1


def test_a_run_in_which_nothing_was_compared_is_not_a_success(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = conformance.Outcome(passed=0, failed=0)
    assert not conformance.report({"replay: crud": nothing})
    assert "total" in capsys.readouterr().out


def test_the_summary_shows_each_difference(capsys: pytest.CaptureFixture[str]) -> None:
    good = conformance.Outcome(passed=2, failed=0, output="fine")
    bad = conformance.Outcome(passed=1, failed=1, output="FAIL crud/create")
    assert conformance.report({"replay: list": good})
    assert not conformance.report({"replay: list": good, "replay: crud": bad})
    printed = capsys.readouterr().out
    assert "FAIL crud/create" in printed
    assert "fine" not in printed
