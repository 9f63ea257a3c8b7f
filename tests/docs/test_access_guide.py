"""Readers of the guide, and of the help, do not become administrators by following it."""

from __future__ import annotations

import pytest

from clusterregistry.registry.main import main
from tests.docs import markdown

GUIDE = markdown.page("docs/guides/access.md")
EMERGENCIES = "## Emergencies: `system:masters`"


def test_the_first_role_that_is_given_reads_only() -> None:
    given = [block.body for block in markdown.blocks(GUIDE) if "create clusterrolebinding" in block.body]
    assert "--clusterrole=view" in given[0]
    assert not any("--clusterrole=view" in body for body in given[1:])


def test_the_group_of_administrators_is_for_emergencies_alone() -> None:
    emergencies = markdown.section(GUIDE, EMERGENCIES)
    assert "system:masters" in emergencies
    assert "system:masters" not in GUIDE.replace(EMERGENCIES, "").replace(emergencies, "")
    assert not any("system:masters" in block.body for block in markdown.blocks(GUIDE))


@pytest.mark.parametrize("command", ["standalone", "aggregated"])
def test_the_help_does_not_propose_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"], {}) == 0
    assert "system:masters" not in capsys.readouterr().out
