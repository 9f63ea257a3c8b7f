"""Installs what the locks name into .venv, and the project itself as a link to src/.

    python3 -m tools.environment runtime        what the server needs to run, and nothing else
    python3 -m tools.environment development    that, and what tests, lint and tools need
    python3 -m tools.environment lock           resolves the locks again; --upgrade takes the newest versions
    python3 -m tools.environment uv ARGS...     runs uv, with pip's settings

What is installed depends on the lock files alone: every package is named with its version and its hashes, and nothing
is resolved, so that later releases of any package change nothing (docs/decisions/0014-uv.md). uv does the work: the one
on the PATH, else a pinned wheel that is kept in ~/.cache/cluster-registry. Only the standard library is used.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from tools.programs import ProgramError, cache, find_pip

ROOT = pathlib.Path(__file__).resolve().parents[1]
UV_LOCK = "requirements/uv.lock"
BUILD_LOCK = "requirements/build.lock"
LOCKS = {"runtime": "requirements/runtime.lock", "development": "requirements/development.lock"}
"""What is installed at each level. Development includes runtime."""

_OLDEST_UV = (0, 5)
_OLDEST_PYTHON = "3.11"


class EnvironmentProblem(Exception):  # noqa: N818 - as the other problems that a person can solve
    """The environment cannot be made; the message says what to do."""


# uv -------------------------------------------------------------------------------------------------------------


def find_uv(environ: Mapping[str, str]) -> str:
    """The uv on the PATH when it is new enough, else the pinned one, which is fetched with pip unless it is there."""
    found = shutil.which("uv", path=environ.get("PATH"))
    if found and _uv_version(found) >= _OLDEST_UV:
        return found
    version = _pinned_uv_version()
    kept = cache() / f"uv-{version}"
    if not (kept / "bin" / "uv").exists():
        _say(f"Fetching uv {version}, which installs the rest (20 MB, once for all clones)")
        _fetch_uv(kept)
    return str(kept / "bin" / "uv")


def _uv_version(program: str) -> tuple[int, ...]:
    done = subprocess.run([program, "--version"], check=False, capture_output=True, text=True)
    words = done.stdout.split()
    try:
        return tuple(int(part) for part in words[1].split(".")[:2])
    except (IndexError, ValueError):
        return ()


def _pinned_uv_version() -> str:
    first = (ROOT / UV_LOCK).read_text().partition("uv==")[2]
    return first.split()[0]


def _fetch_uv(kept: pathlib.Path) -> None:
    """Installs the wheel beside its place and renames it, so that an interrupted download leaves nothing behind."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".uv-") as folder:
        target = pathlib.Path(folder) / "uv"
        command = [*find_pip(pathlib.Path(folder)), "install", "--quiet", "--disable-pip-version-check"]
        command += ["--root-user-action=ignore", "--require-hashes", "--no-deps", "--only-binary=:all:"]
        _run([*command, "--target", str(target), "--requirement", str(ROOT / UV_LOCK)], os.environ)
        try:
            target.rename(kept)
        except OSError:  # another clone was faster
            if not (kept / "bin" / "uv").exists():
                raise


# pip's settings -------------------------------------------------------------------------------------------------

_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "trusted-host": "UV_INSECURE_HOST",
    "no-index": "UV_NO_INDEX",
    "timeout": "UV_HTTP_TIMEOUT",
}
_COMMA_SEPARATED = frozenset({"find-links"})


def uv_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for uv: a mirror, proxy or authority that pip is set up with counts for uv too.

    uv reads no configuration of pip. What uv itself is told by its own variables counts more.
    """
    settings = _pip_settings(environ)
    given = {_SETTINGS[name]: _as_uv_writes(name, value) for name, value in settings.items() if name in _SETTINGS}
    return {**given, **environ, "UV_COMPILE_BYTECODE": "1", "UV_PYTHON_DOWNLOADS": "never"}


def _pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """What `pip config list` says; the environment counts more than files, `install` more than `global`."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=dict(environ))
    settings: dict[str, tuple[int, str]] = {}
    for line in done.stdout.splitlines():
        key, equals, quoted = line.partition("=")
        section, _, name = key.rpartition(".")
        rank = {"global": 0, "install": 1, ":env:": 2}.get(section)
        if not equals or rank is None or rank < settings.get(name, (0, ""))[0]:
            continue
        settings[name] = rank, " ".join(shlex.split(quoted))
    return {name: value for name, (_, value) in settings.items() if value.strip()}


def _as_uv_writes(name: str, value: str) -> str:
    words = value.replace("\\n", " ").split()
    return ("," if name in _COMMA_SEPARATED else " ").join(words)


# The environment ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stamp:
    """What an environment was made of. One that was made of the same is left alone."""

    level: str
    digest: str
    python: str
    root: str

    @classmethod
    def wanted(cls, level: str) -> Stamp:
        inputs = (ROOT / name for name in (LOCKS[level], BUILD_LOCK, "pyproject.toml"))
        digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in inputs)).hexdigest()
        return cls(level, digest, f"{sys.executable} {sys.version}", str(ROOT))


def ensure(level: str, venv: pathlib.Path) -> None:
    """Makes .venv hold what a level needs. Quick when it does already; an interrupted one is done again."""
    stamp_file = venv / ".installed.json"
    held = _held(stamp_file, venv)
    enough = [Stamp.wanted("development"), Stamp.wanted(level)]
    if held in enough:
        return
    # Development tools that are there stay: they are brought up to date, not removed.
    level = held.level if held and held.level == "development" else level
    wanted = Stamp.wanted(level)
    uv = find_uv(os.environ)
    environ = uv_environment(os.environ)
    stamp_file.unlink(missing_ok=True)
    if held is None or held.python != wanted.python:
        version = ".".join(map(str, sys.version_info[:3]))
        _say(f"Making {_shown(venv)} with Python {version}, {sys.executable}")
        _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(venv)], environ)
    _say(f"Installing what {LOCKS[level]} names")
    install(uv, lock=ROOT / LOCKS[level], venv=venv, environ=environ)
    _say("Installing cluster-registry itself, as a link to src/")
    link = [uv, "pip", "install", "--quiet", "--python", str(venv / "bin" / "python"), "--no-deps"]
    _run([*link, "--build-constraints", str(ROOT / BUILD_LOCK), "--editable", str(ROOT)], environ)
    stamp_file.write_text(json.dumps(asdict(wanted), indent=1) + "\n")
    _say(f"Ready: {_shown(venv)}/bin/clusterregistry")


def install(uv: str, *, lock: pathlib.Path, venv: pathlib.Path, environ: Mapping[str, str]) -> None:
    """Makes an environment hold exactly what a lock names: nothing is resolved, and nothing else stays."""
    command = [uv, "pip", "sync", "--python", str(venv / "bin" / "python"), "--require-hashes"]
    _run([*command, "--only-binary", ":all:", str(lock)], environ)


def _held(stamp_file: pathlib.Path, venv: pathlib.Path) -> Stamp | None:
    if not (venv / "bin" / "python").exists():  # follows the link: the Python that it was made with may be gone
        return None
    try:
        return Stamp(**json.loads(stamp_file.read_text()))
    except (OSError, ValueError, TypeError):
        return None


# The locks ------------------------------------------------------------------------------------------------------


def lock(*, upgrade: bool) -> None:
    """Resolves all locks for every platform and every Python from the oldest that is supported on."""
    uv, environ = find_uv(os.environ), uv_environment(os.environ)
    options = ["--quiet", "--universal", "--python-version", _OLDEST_PYTHON, "--generate-hashes", "--no-header"]
    options += ["--no-emit-index-url", "--no-emit-find-links", *(["--upgrade"] if upgrade else [])]
    project = str(ROOT / "pyproject.toml")
    runtime = ROOT / LOCKS["runtime"]
    for name, inputs in {
        LOCKS["runtime"]: [project],
        LOCKS["development"]: [project, "--extra", "dev", "--constraints", str(runtime)],
        BUILD_LOCK: [str(ROOT / "requirements/build.in")],
        UV_LOCK: [str(ROOT / "requirements/uv.in")],
    }.items():
        _say(f"Resolving {name}")
        _run([uv, "pip", "compile", *options, "--output-file", str(ROOT / name), *inputs], environ)


# Running --------------------------------------------------------------------------------------------------------


def _run(command: Sequence[str], environ: Mapping[str, str]) -> None:
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, env=dict(environ))
    if done.returncode:
        raise EnvironmentProblem(
            f"this did not work: {shlex.join(command)}\n"
            "What to do: its message is above. A package index must be reachable: a mirror or proxy that pip is set up "
            "with (pip config list) is used, and so are uv's own variables (UV_DEFAULT_INDEX, SSL_CERT_FILE)."
        )


def _say(line: str) -> None:
    print(f"==> {line}", flush=True)


def _shown(path: pathlib.Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def main(arguments: Iterable[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m tools.environment", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / ".venv", help="where to install; default: .venv")
    commands = parser.add_subparsers(dest="command", required=True)
    for level in LOCKS:
        commands.add_parser(level)
    commands.add_parser("lock").add_argument("--upgrade", action="store_true")
    commands.add_parser("uv").add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args([*arguments])
    try:
        if given.command == "lock":
            lock(upgrade=given.upgrade)
        elif given.command == "uv":
            _run([find_uv(os.environ), *given.arguments], uv_environment(os.environ))
        else:
            ensure(given.command, given.venv.absolute())
    except (EnvironmentProblem, ProgramError) as problem:
        print(f"tools.environment: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # what was begun is done again at the next call
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
