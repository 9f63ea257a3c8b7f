"""The Dockerfile: what can be said of it without building it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from clusterregistry import __version__
from clusterregistry.crinit.manifests import pods
from tools import locked

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()


def test_the_image_is_of_this_version_pinned_and_runs_as_the_user_of_the_manifests() -> None:
    assert f"clusterregistry:{__version__}" in DOCKERFILE
    assert re.search(r"^ARG PYTHON=\d+\.\d+\.\d+-slim-\w+$", DOCKERFILE, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["python:${PYTHON}"] * 2
    assert f"USER {pods.USER}:{pods.USER}" in DOCKERFILE
    assert "--require-hashes" in DOCKERFILE


def test_everything_that_is_copied_is_there_and_not_ignored() -> None:
    copied = [word for line in re.findall(r"^COPY (?!--)(.*)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]]
    kept = re.findall(r"^!(.*)$", (ROOT / "deploy" / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert name in kept


def test_the_image_gets_what_the_project_needs_and_nothing_of_what_tests_need() -> None:
    packages = locked.read((ROOT / "requirements.lock").read_text())
    names = set(locked.needed(packages, locked.project_dependencies()))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"aiohttp", "multidict", "cffi", "pyyaml", "uvloop"} <= names
    assert len(names) >= len(project["dependencies"])
    assert not names & {"pytest", "ruff", "mypy", "hypothesis", "schemathesis", "hatchling"}
    assert all("--hash=sha256:" in "".join(packages[name].lines) for name in names)


def test_a_package_that_is_not_locked_is_named() -> None:
    with pytest.raises(SystemExit, match="does not have nonesuch"):
        locked.needed({}, ["nonesuch"])
