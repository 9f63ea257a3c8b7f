"""The Dockerfile: what can be said of it without building it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from clusterregistry import __version__
from clusterregistry.apiserver.cli import server as servers
from clusterregistry.crinit.manifests import pods
from tests.apiserver.server.programs import Program
from tests.docs import markdown
from tests.product import load

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


def image_environment() -> dict[str, str]:
    """The variables that are for the program."""
    words = [word for line in re.findall(r"^ENV (.*)$", DOCKERFILE, re.MULTILINE) for word in line.split()]
    return dict(word.split("=", 1) for word in words if word.startswith("CLUSTERREGISTRY_"))


def exec_form(instruction: str) -> list[str]:
    """The words of an instruction in JSON, its lines put together as a builder does."""
    text = DOCKERFILE.replace("\\\n", "")
    (words,) = re.findall(rf"^{instruction} (\[.*\])$", text, re.MULTILINE)
    found: list[str] = json.loads(words)
    return found


def test_a_container_without_arguments_is_a_registry_that_its_host_reaches_by_a_published_port() -> None:
    assert exec_form("ENTRYPOINT") == ["clusterregistry"]
    command, *arguments = exec_form("CMD")
    completed = load(arguments, image_environment())
    assert command == "standalone"
    assert completed.serving.bind_address == "0.0.0.0"
    assert completed.server_url == "https://127.0.0.1:8443"
    assert {"127.0.0.1", "localhost"} <= set(servers.wanted(completed).names)
    assert f"VOLUME {completed.data_dir}" in DOCKERFILE
    assert f"EXPOSE {completed.serving.secure_port}" in DOCKERFILE


def test_the_files_that_the_guide_copies_are_those_of_the_image() -> None:
    guide = markdown.page("docs/guides/docker.md")
    kubeconfig = load([], image_environment()).layout.kubeconfig
    assert f"docker cp registry:{kubeconfig} ." in guide
    assert set(re.findall(r"--volume \S+:(\S+)", guide)) == {str(kubeconfig.parent)}


def test_the_image_is_healthy_while_the_server_lives(tmp_path: Path) -> None:
    program, *arguments = exec_form("HEALTHCHECK .* CMD")
    assert program == "python"

    def status(port: int) -> int:
        environ = {"CLUSTERREGISTRY_SECURE_PORT": str(port)}
        return subprocess.run([sys.executable, *arguments], env=environ, check=False, capture_output=True).returncode

    with Program(tmp_path) as server:
        assert status(server.port) == 0
        assert server.stop() == 0
        assert status(server.port) == 1
