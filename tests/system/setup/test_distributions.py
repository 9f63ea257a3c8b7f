"""The wheel and the source distribution: what is in them, and whether they run with runtime dependencies alone."""

from __future__ import annotations

import email
import email.message
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusterregistry import __version__
from tests.system.setup import pythons
from tools import environment, release
from tools.environment import LOCKS, ROOT
from tools.live_server import running

_IMPORT_ALL = """
import importlib, pkgutil, clusterregistry
names = [each.name for each in pkgutil.walk_packages(clusterregistry.__path__, "clusterregistry.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(names))
"""


@dataclass(frozen=True)
class Built:
    wheel: Path
    sdist: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    sdist_or_wheel = {path.suffix: path for path in release.dist(tmp_path_factory.mktemp("dist"))}
    return Built(wheel=sdist_or_wheel[".whl"], sdist=sdist_or_wheel[".gz"])


def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_the_wheel_holds_the_package_and_nothing_else(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = archive.namelist()
    ours = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    ours = {name for name in ours if "__pycache__" not in name}
    assert {name for name in names if ".dist-info/" not in name} == ours
    assert "clusterregistry/py.typed" in names


def test_the_source_distribution_can_be_built_and_read(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "SECURITY.md", "CITATION.cff", "CHANGELOG.md"} <= names
    assert "src/clusterregistry/__init__.py" in names
    assert not [name for name in names if name.startswith(("tests/", ".ci", "benchmarks/"))]


def test_the_metadata_is_that_of_a_published_package(built: Built) -> None:
    held = metadata(built.wheel)
    assert (held["Name"], held["Version"]) == ("cluster-registry", __version__)
    assert held["Requires-Python"] == ">=3.11"
    assert held["License-Expression"] == "Apache-2.0"
    assert held["Description-Content-Type"] == "text/markdown"
    assert held.get_all("Project-URL")
    classifiers = held.get_all("Classifier") or []
    assert {f"Programming Language :: Python :: {each}" for each in pythons.SUPPORTED} <= set(classifiers)


@pytest.mark.parametrize("python", pythons.SUPPORTED)
def test_the_wheel_runs_with_runtime_dependencies_alone(python: str, built: Built, tmp_path: Path) -> None:
    found = pythons.get_cached().get(python)
    if found is None:
        pytest.skip(f"there is no Python {python} on this machine")
    uv, environ, venv = environment.find_uv(os.environ), environment.uv_environment(os.environ), tmp_path / "venv"
    interpreter = venv / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", str(found), str(venv)], check=True, env=environ)
    environment.install(uv, lock=ROOT / LOCKS["runtime"], venv=venv, environ=environ)
    install = [uv, "pip", "install", "--quiet", "--no-deps", "--python", str(interpreter), str(built.wheel)]
    subprocess.run(install, check=True, env=environ)
    subprocess.run([uv, "pip", "check", "--quiet", "--python", str(interpreter)], check=True, env=environ)

    version = subprocess.run(
        [venv / "bin" / "clusterregistry", "version", "--short"], check=True, capture_output=True, text=True
    )
    assert version.stdout == f"v{__version__}\n"
    # Warnings are errors: what a newer Python deprecates is known before it breaks.
    imported = subprocess.run(
        [interpreter, "-W", "error", "-c", _IMPORT_ALL], check=False, capture_output=True, text=True
    )
    assert imported.returncode == 0, imported.stderr
    assert int(imported.stdout) > 100
    with running(tmp_path / "server", command=[str(venv / "bin" / "clusterregistry")]) as server:
        assert server.ca_file.exists()


def test_uvx_runs_the_wheel_without_an_installation(built: Built) -> None:
    uv, environ = environment.find_uv(os.environ), environment.uv_environment(os.environ)
    command = [uv, "tool", "run", "--quiet", "--constraints", str(ROOT / LOCKS["runtime"]), "--from", str(built.wheel)]
    for program in ("clusterregistry", "crinit"):
        done = subprocess.run([*command, program, "--help"], check=True, capture_output=True, text=True, env=environ)
        assert done.stdout.startswith(program)


def test_pip_installs_the_wheel_after_the_locked_versions(built: Built, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    pip = [str(tmp_path / "venv" / "bin" / "pip"), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", str(ROOT / LOCKS["runtime"])], check=True)
    subprocess.run([*pip, str(built.wheel)], check=True)
    done = subprocess.run([tmp_path / "venv" / "bin" / "crinit", "--help"], check=True, capture_output=True, text=True)
    assert "crinit" in done.stdout
