"""The Dockerfile: what can be said of it without building it."""

from __future__ import annotations

import re
from pathlib import Path

from clusterregistry import __version__
from clusterregistry.crinit.manifests import pods

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


def test_the_image_gets_what_running_needs_and_nothing_of_what_tests_need() -> None:
    installed = re.findall(r"/opt/clusterregistry/bin/python install (.*?)(?: \\)?$", DOCKERFILE, re.MULTILINE)
    assert installed == ["--require-hashes --no-deps -r requirements/runtime.lock", "--no-deps wheels/*.whl"]
