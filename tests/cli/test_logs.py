"""The log as JSON: every line of it, also what Python itself would print."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tools.ports import free_port


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def logged(program: str, *, v: int = 0) -> list[dict[str, Any]]:
    """What a program writes to standard error once its log is JSON."""
    setup = (
        "import logging, sys, threading, warnings\n"
        "from clusterregistry.cli import logs\n"
        "from clusterregistry.cli.options.general import GeneralOptions\n"
        f"logs.configure(GeneralOptions(logging_format='json', v={v}))\n"
        "log = logging.getLogger('clusterregistry.part')\n"
    )
    done = subprocess.run([sys.executable, "-c", setup + program], check=False, capture_output=True, text=True)
    return lines(done.stderr)


def test_a_line_has_the_keys_of_kube_apiservers_json() -> None:
    before = time.time() * 1000
    (line,) = logged("log.info('%s is \"ready\"\\n', 'it')")
    assert before - 1 <= line.pop("ts") <= time.time() * 1000 + 1
    assert line == {
        "caller": "<string>:6",
        "logger": "clusterregistry.part",
        "level": "info",
        "msg": 'it is "ready"\n',
        "v": 0,
    }


def test_warnings_and_details_have_their_level() -> None:
    program = "log.warning('a'); log.debug('b'); logging.getLogger('other').info('left out')"
    found = [(line["level"], line["v"], line["msg"]) for line in logged(program, v=1)]
    assert found == [("warning", 0, "a"), ("debug", 1, "b")]


@pytest.mark.parametrize(
    "program",
    [
        "try:\n  1 / 0\nexcept ZeroDivisionError:\n  log.exception('it failed')",
        "1 / 0",
        "thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()",
        "class Falls:\n  def __del__(self): 1 / 0\nfalls = Falls()\ndel falls",
    ],
)
def test_a_traceback_is_one_line(program: str) -> None:
    (line,) = logged(program)
    assert line["err"] == "ZeroDivisionError: division by zero"
    assert line["stacktrace"].startswith("Traceback (most recent call last):\n")
    assert "v" not in line


def test_a_warning_of_python_is_a_line() -> None:
    (line,) = logged("warnings.warn('old', UserWarning)")
    assert line["logger"] == "py.warnings"
    assert "UserWarning: old" in line["msg"]


@pytest.mark.parametrize(("command", "flags"), [("standalone", []), ("aggregated", ["--kubeconfig={kubeconfig}"])])
def test_all_of_standard_error_is_json_also_when_the_start_fails(
    command: str, flags: list[str], tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "registry.db").write_text("no database " * 100)
    (tmp_path / "kubeconfig").write_text("{}")
    arguments = [flag.format(kubeconfig=tmp_path / "kubeconfig") for flag in flags]
    arguments += [f"--data-dir={tmp_path / 'data'}", f"--secure-port={free_port()}", "--logging-format=json"]
    done = subprocess.run(
        [sys.executable, "-m", "clusterregistry", command, *arguments, "--audit-log-maxage=1"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    *_, last = lines(done.stderr)
    assert last["level"] == "error"
    assert "What to do: " in last["msg"]


def test_a_command_that_a_message_quotes_gets_the_name_of_the_program() -> None:
    script = (
        "import logging; from clusterregistry.cli import logs; "
        "from clusterregistry.cli.options.general import GeneralOptions; "
        "logs.configure(GeneralOptions(), 'sample'); "
        "logging.getLogger('clusterregistry.part').warning('%s: `storage check` and `kubectl get`', 'damaged')"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stderr.endswith("damaged: `sample storage check` and `kubectl get`\n")
