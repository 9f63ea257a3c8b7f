"""docs/guides/deploy.md: its commands are ones that crinit and the chart know, and its messages are real."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from clusterregistry.crinit import flags, reference, settings_from_flags
from clusterregistry.crinit.main import main
from clusterregistry.crinit.settings import Mode
from tests.docs import markdown
from tools.reference import CRINIT_PAGE

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "deploy.md").read_text()
COMMANDS = re.findall(r"^crinit .*$", GUIDE, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_of_the_guide_is_one_that_crinit_knows(line: str) -> None:
    mode, command, name, *rest = shlex.split(line.partition(">")[0])[1:]
    reading = flags.read(rest)
    assert reading.problems == []
    assert flags.misplaced(reading, command) == []
    settings_from_flags.settings(Mode(mode), name, reading.given)


def test_the_guide_has_all_commands() -> None:
    assert {line.split()[2] for line in COMMANDS} == set(flags.COMMANDS)


def test_the_guide_shows_the_objects_of_a_first_init(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["standalone", "init", "my-registry", "--dry-run"], {}) == 0
    for line in capsys.readouterr().out.splitlines():
        assert f"{line.removeprefix('would apply ')}: created" in GUIDE


def test_the_reference_is_that_of_the_flags() -> None:
    assert CRINIT_PAGE.read_text(encoding="utf-8") == reference.markdown(), "run tools/reference.py"


def test_flags_that_the_guide_names_exist() -> None:
    """In its text: what its shell blocks say is run, by test_deploy_guide_in_a_cluster."""
    others = {"requestheader-client-ca-file", "proxy-client-cert-file", "proxy-client-key-file", "context"}
    others |= {"max-requests-inflight", "v", "tls-server-name", "server"}
    named = set(re.findall(r"--([a-z][a-z-]*)", markdown.prose(GUIDE)))
    assert named - others <= flags.BY_NAME.keys()
