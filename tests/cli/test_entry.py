"""What a program does with its output at its end, as processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from clusterregistry.cli import exit_status

HELP = (sys.executable, "-m", "clusterregistry", "standalone", "--help=all")


def test_a_pipe_that_is_closed_is_no_failure() -> None:
    with subprocess.Popen(HELP, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == exit_status.OK


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device is one of Linux")
def test_output_that_cannot_be_written_is_a_failure() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(HELP, stdout=full, stderr=subprocess.PIPE, check=False, text=True)
    assert done.returncode == exit_status.STARTUP
    assert done.stderr.startswith("The output cannot be written: No space left on device")
    assert "Exception" not in done.stderr


def test_a_program_without_an_output_ends_as_ever() -> None:
    done = subprocess.run(("sh", "-c", '"$@" >&-', "sh", *HELP), stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (exit_status.OK, b"")
