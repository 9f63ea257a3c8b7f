"""docs/guides/deploy.md: its commands are ones that crinit and the chart know, and its messages are real."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from clusterregistry.cli.options.sources import read_flags
from clusterregistry.crinit import options, reference, settings_from_flags
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
    reading = read_flags(options.OPTIONS, rest)
    given = {each.flag: each.text for each in reading.given}
    assert reading.problems == []
    assert options.misplaced(given, command) == []
    settings_from_flags.settings(Mode(mode), name, given)


def test_the_guide_has_all_commands() -> None:
    assert {line.split()[2] for line in COMMANDS} == set(options.COMMANDS)


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
    assert named - others <= options.OPTIONS.by_flag.keys()
