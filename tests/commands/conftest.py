"""A registry over TLS, and the commands as a person calls them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.server.programs import Program
from tests.commands.desks import Desk


@pytest.fixture
def desk(program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    with Desk(program, tmp_path, capsys) as made:
        yield made
