"""Members that all tests of this directory share: a test that stops one starts it again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.system.members import members as member_clusters
from tests.system.members.members import Members


@pytest.fixture(scope="session")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Members]:
    with member_clusters.running(tmp_path_factory.mktemp("members")) as started:
        yield started
