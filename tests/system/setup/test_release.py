"""A release names one version everywhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from clusterregistry import __version__
from tools import release
from tools.environment import ROOT


def test_every_file_that_names_the_version_names_this_one() -> None:
    assert release.version() == __version__
    assert release.wrong_copies() == []


def test_a_new_version_is_written_to_every_place(tmp_path: Path) -> None:
    for place in (release.SOURCE, *release.COPIES):
        (tmp_path / place.file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place.file, tmp_path / place.file)
    release.SOURCE.write("7.8.9", tmp_path)
    assert len(release.wrong_copies(tmp_path)) >= len(release.COPIES)
    release.set_version("7.8.9", tmp_path)
    assert release.version(tmp_path) == "7.8.9"
    assert release.wrong_copies(tmp_path) == []


def test_what_is_no_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(release.ReleaseError, match="v1 is no version"):
        release.set_version("v1", tmp_path)


@pytest.mark.parametrize(
    ("heading", "problem"),
    [("## [Unreleased]", "no heading"), ("## [1.2.3] - soon", "soon is no date"), ("## [1.2.3] - 2030-01-02", "")],
)
def test_the_changelog_must_have_the_release_with_its_date(heading: str, problem: str) -> None:
    found = release.changelog_problems("1.2.3", f"# Changelog\n\n{heading}\n")
    assert problem in "".join(found)
    assert bool(found) == bool(problem)
