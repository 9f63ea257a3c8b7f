"""What is installed depends on the locks alone."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import http.server
import os
import re
import subprocess
import sys
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools import environment
from tools.environment import BUILD_LOCK, LOCKS, ROOT, UV_LOCK

_PINNED = re.compile(r"^([a-z0-9-]+)==([^ ;\\]+)", re.MULTILINE)
ALL_LOCKS = [*LOCKS.values(), BUILD_LOCK, UV_LOCK]


def pins(lock: str) -> dict[str, str]:
    return dict(_PINNED.findall((ROOT / lock).read_text()))


def normal(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement)
    assert name
    return re.sub(r"[-_.]+", "-", name.group()).lower()


# The locks themselves -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", ALL_LOCKS)
def test_a_lock_pins_every_package_with_hashes_and_names_no_index(lock: str) -> None:
    text = (ROOT / lock).read_text()
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        assert _PINNED.match(entry)
        assert "--hash=sha256:" in entry
    assert "://" not in text


def test_the_locks_agree_and_cover_what_the_project_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime, development = pins(LOCKS["runtime"]), pins(LOCKS["development"])
    assert {normal(each) for each in project["project"]["dependencies"]} <= runtime.keys()
    assert {normal(each) for each in project["project"]["optional-dependencies"]["dev"]} <= development.keys()
    assert {normal(each) for each in project["build-system"]["requires"]} <= pins(BUILD_LOCK).keys()
    assert runtime.items() <= development.items()
    assert not runtime.keys() & {"pytest", "ruff", "mypy", "hypothesis", "hatchling", "pip"}


def test_the_locks_are_as_the_declared_dependencies_resolve() -> None:
    uv, environ = environment.find_uv(os.environ), environment.uv_environment(os.environ)
    command = [uv, "pip", "install", "--dry-run", "--offline", "--python", sys.executable]
    # Everything is installed here as locked: a declared dependency that the lock does not satisfy would be missing.
    done = subprocess.run(
        [*command, "--requirement", str(ROOT / "pyproject.toml"), "--extra", "dev"],
        check=False, capture_output=True, text=True, env=environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Would make no changes" in done.stderr


# Later releases -------------------------------------------------------------------------------------------------


def write_wheel(folder: Path, name: str, version: str, requires: list[str]) -> Path:
    """A wheel with nothing in it but its name, its version and what it asks for."""
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nProvides-Extra: more"]
    metadata += [f"Requires-Dist: {each}" for each in requires]
    files = {
        f"{stem}.dist-info/METADATA": "\n".join([*metadata, ""]),
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in files.items()]
    files[f"{stem}.dist-info/RECORD"] = "\n".join([*record, f"{stem}.dist-info/RECORD,,", ""])
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name_inside, text in files.items():
            archive.writestr(name_inside, text)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


@dataclass(frozen=True)
class Twin:
    """A package index, and a lock that names the packages of one of ours at the versions of ours."""

    url: str
    lock: Path


@contextlib.contextmanager
def twin_index(folder: Path, pinned: dict[str, str]) -> Iterator[Twin]:
    """An index that has every pinned version, and a newer one of every package that asks for newer ones with extras."""
    names = sorted(pinned)
    lines = []
    for name, other in zip(names, [*names[1:], names[0]], strict=True):
        home = folder / "simple" / name
        home.mkdir(parents=True)
        locked = write_wheel(home, name, pinned[name], [f"{other}[more]>={pinned[other]}"])
        write_wheel(home, name, "99999.1", [f"{other}[more]>=99999.1", "never-published>=1"])
        lines.append(f"{name}=={pinned[name]} --hash=sha256:{hashlib.sha256(locked.read_bytes()).hexdigest()}\n")
        links = (f'<a href="{wheel.name}">{wheel.name}</a>' for wheel in sorted(home.glob("*.whl")))
        (home / "index.html").write_text(f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>")
    lock = folder / "twin.lock"
    lock.write_text("".join(lines))
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Twin(f"http://127.0.0.1:{server.server_port}/simple", lock)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("level", LOCKS)
def test_a_newer_release_of_every_package_changes_nothing_that_is_installed(level: str, tmp_path: Path) -> None:
    pinned = pins(LOCKS[level])
    venv, uv = tmp_path / "venv", environment.find_uv(os.environ)
    with twin_index(tmp_path, pinned) as twin:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "UV_DEFAULT_INDEX": twin.url,
            "UV_CACHE_DIR": str(tmp_path / "cache"),
        }
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(venv)], check=True, env=environ)
        environment.install(uv, lock=twin.lock, venv=venv, environ=environ)
        unlocked = subprocess.run(
            [uv, "pip", "install", "--dry-run", "--python", str(venv / "bin" / "python"), f"{min(pinned)}>=99999"],
            check=False, capture_output=True, text=True, env=environ,
        )  # fmt: skip
    listed = subprocess.run(
        [uv, "pip", "list", "--format", "freeze", "--python", str(venv / "bin" / "python")],
        check=True, capture_output=True, text=True, env=environ,
    )  # fmt: skip
    assert dict(line.split("==") for line in listed.stdout.split()) == pinned
    assert "never-published" in unlocked.stderr  # the index does offer newer releases, and resolving would meet them


def test_a_file_that_is_not_the_locked_one_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    venv, uv = tmp_path / "venv", environment.find_uv(os.environ)
    with twin_index(tmp_path, {"some-package": "1.0"}) as twin:
        environ = {"PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": twin.url, "UV_CACHE_DIR": str(tmp_path / "cache")}
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(venv)], check=True, env=environ)
        write_wheel(tmp_path / "simple" / "some-package", "some-package", "1.0", ["other"])
        with pytest.raises(environment.EnvironmentProblem, match="What to do"):
            environment.install(uv, lock=twin.lock, venv=venv, environ=environ)
    assert "Hash mismatch" in capfd.readouterr().err


# pip's settings -------------------------------------------------------------------------------------------------


def test_a_mirror_that_pip_is_set_up_with_counts_for_uv(tmp_path: Path) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text(
        "[global]\nindex-url = https://mirror.example.com/simple\ncert = /etc/mirror.pem\n"
        "[install]\nextra-index-url = https://one.example.com/simple\n  https://two.example.com/simple\n"
    )
    environ = environment.uv_environment({"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": str(settings)})
    assert environ["UV_DEFAULT_INDEX"] == "https://mirror.example.com/simple"
    assert environ["UV_INDEX"] == "https://one.example.com/simple https://two.example.com/simple"
    assert environ["SSL_CERT_FILE"] == "/etc/mirror.pem"


def test_a_variable_of_pip_counts_more_than_its_file_and_one_of_uv_more_than_both(tmp_path: Path) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nindex-url = https://file.example.com/simple\nproxy = http://file.example.com:3128\n")
    environ = environment.uv_environment(
        {
            "PATH": os.environ["PATH"],
            "PIP_CONFIG_FILE": str(settings),
            "PIP_INDEX_URL": "https://variable.example.com/simple",
            "ALL_PROXY": "http://own.example.com:3128",
        }
    )
    assert environ["UV_DEFAULT_INDEX"] == "https://variable.example.com/simple"
    assert environ["ALL_PROXY"] == "http://own.example.com:3128"
