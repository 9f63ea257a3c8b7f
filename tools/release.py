"""Builds what is published, and checks that a release is whole.

    python -m tools.release dist                the wheel and the source distribution, into dist/
    python -m tools.release check               what keeps this commit from being a release
    python -m tools.release release             check, then everything that a release has, into dist/
    python -m tools.release set-version 0.2.0   writes a version to all places that name it

The version stands in src/clusterregistry/__init__.py. Other files that have to name it are compared with it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tools.environment import BUILD_LOCK, LOCKS, ROOT, find_uv, uv_environment
from tools.programs import ensure

DIST = ROOT / "dist"
CHARTS = (ROOT / "deploy" / "chart", ROOT / "deploy" / "agent-chart")
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")


class ReleaseError(Exception):
    """A release that cannot be made; the message names all reasons."""


@dataclass(frozen=True)
class Place:
    """A file that names the version: the pattern's only group is the version."""

    file: str
    pattern: str

    def named(self, root: pathlib.Path = ROOT) -> list[str]:
        return re.findall(self.pattern, (root / self.file).read_text(), re.MULTILINE)

    def write(self, version: str, root: pathlib.Path = ROOT) -> None:
        path = root / self.file

        def replaced(found: re.Match[str]) -> str:
            start, end = found.start(1) - found.start(), found.end(1) - found.start()
            return found.group()[:start] + version + found.group()[end:]

        path.write_text(re.sub(self.pattern, replaced, path.read_text(), flags=re.MULTILINE))


SOURCE = Place("src/clusterregistry/__init__.py", r'^__version__ = "(.*)"$')
_IMAGE = r"clusterregistry:([0-9][0-9a-z.]*)"
COPIES = (
    Place("README.md", r"cluster_registry-([0-9][0-9a-z.]*?)-py3"),
    Place("CITATION.cff", r"^version: (.*)$"),
    Place("deploy/Dockerfile", _IMAGE),
    Place("deploy/chart/Chart.yaml", r"^version: (.*)$"),
    Place("deploy/chart/Chart.yaml", r'^appVersion: "(.*)"$'),
    Place("deploy/chart/values.yaml", _IMAGE),
    Place("deploy/agent-chart/Chart.yaml", r"^version: (.*)$"),
    Place("deploy/agent-chart/Chart.yaml", r'^appVersion: "(.*)"$'),
    Place("deploy/agent-chart/values.yaml", _IMAGE),
    Place("docs/guides/deploy.md", r"^(?:docker|crinit \w+ init) .*clusterregistry:([0-9][0-9a-z.]*)"),
    Place("docs/reference/crinit.md", _IMAGE),
)


def version(root: pathlib.Path = ROOT) -> str:
    return SOURCE.named(root)[0]


def set_version(new: str, root: pathlib.Path = ROOT) -> None:
    """Writes a version to all places that name it."""
    if not _VERSION.fullmatch(new):
        raise ReleaseError(f"{new} is no version such as 0.2.0 or 0.2.0rc1")
    for place in (SOURCE, *COPIES):
        place.write(new, root)


# Checks ---------------------------------------------------------------------------------------------------------


def wrong_copies(root: pathlib.Path = ROOT) -> list[str]:
    """The places that name another version, or none."""
    wanted = version(root)
    wrong = {place: [each for each in place.named(root) if each != wanted] for place in COPIES}
    missing = [place for place in COPIES if not place.named(root)]
    return [
        *(f"{place.file} names {', '.join(found)}, not {wanted}" for place, found in wrong.items() if found),
        *(f"{place.file} does not name the version: {place.pattern}" for place in missing),
    ]


def changelog_problems(wanted: str, changelog: str) -> list[str]:
    found = re.search(rf"^## \[{re.escape(wanted)}\] - (\S+)$", changelog, re.MULTILINE)
    if not found:
        return [f"CHANGELOG.md has no heading `## [{wanted}] - {dt.datetime.now(dt.UTC).date()}`"]
    try:
        dt.date.fromisoformat(found.group(1))
    except ValueError:
        return [f"CHANGELOG.md: {found.group(1)} is no date"]
    return []


def problems() -> list[str]:
    """Everything that keeps this commit from being a release."""
    found = [*wrong_copies(), *changelog_problems(version(), (ROOT / "CHANGELOG.md").read_text())]
    if _output(["git", "status", "--porcelain"]).strip():
        found.append("the work tree has changes that are not committed")
    tags = _output(["git", "tag", "--list", f"v{version()}"]).split()
    if tags and _output(["git", "rev-parse", f"{tags[0]}^{{commit}}"]) != _output(["git", "rev-parse", "HEAD"]):
        found.append(f"the tag {tags[0]} is at another commit: raise the version (set-version)")
    return found


def check() -> None:
    found = problems()
    if found:
        raise ReleaseError("\n".join([f"{len(found)} reasons why this is no release:", *(f"  {one}" for one in found)]))
    _say(f"{version()}: versions agree, the changelog has the release, everything is committed")


# Building -------------------------------------------------------------------------------------------------------


def dist(folder: pathlib.Path = DIST) -> list[pathlib.Path]:
    """Builds the wheel and the source distribution: the same bytes for the same commit."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    environ = uv_environment(os.environ)
    environ.setdefault("SOURCE_DATE_EPOCH", _output(["git", "log", "-1", "--format=%ct"]).strip() or "315532800")
    _say(f"Building cluster-registry {version()}")
    command = [find_uv(os.environ), "build", "--quiet", "--python", sys.executable, "--out-dir", str(folder)]
    _run([*command, "--build-constraints", str(ROOT / BUILD_LOCK), str(ROOT)], environ)
    (folder / ".gitignore").unlink(missing_ok=True)
    return sorted(folder.iterdir())


def release() -> list[pathlib.Path]:
    """Everything that a release has: wheel, sdist, the versions it was tested with, the chart, checksums."""
    check()
    dist()
    shutil.copy(ROOT / LOCKS["runtime"], DIST / f"cluster_registry-{version()}.lock")
    _say("Packaging the chart")
    helm = str(ensure("helm-4.2", say=_say))
    for chart in CHARTS:
        _run([helm, "package", str(chart), "--destination", str(DIST)], os.environ)
    built = sorted(DIST.iterdir())
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in built)
    (DIST / "SHA256SUMS").write_text(sums)
    return [*built, DIST / "SHA256SUMS"]


def _next_steps() -> str:
    return "\n".join(
        (
            "Next:",
            f"  git tag v{version()}",
            "  upload the files of dist/ to the release, wheel and sdist also to the package index",
            f"  docker build --file deploy/Dockerfile --tag REGISTRY/clusterregistry:{version()} . && docker push ...",
        )
    )


# Running --------------------------------------------------------------------------------------------------------


def _run(command: Sequence[str], environ: os._Environ[str] | dict[str, str]) -> None:
    done = subprocess.run(command, check=False, cwd=ROOT, stdin=subprocess.DEVNULL, env=dict(environ))
    if done.returncode:
        raise ReleaseError(f"this did not work, its message is above: {' '.join(command)}")


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, check=False, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.stdout


def _say(line: str) -> None:
    print(f"==> {line}", flush=True)


def _built(build: Callable[[], list[pathlib.Path]]) -> None:
    for path in build():
        print(f"{path.stat().st_size:>10,}  {path.relative_to(ROOT)}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("dist", "check", "release"):
        commands.add_parser(name)
    commands.add_parser("set-version").add_argument("version")
    given = parser.parse_args(arguments)
    try:
        if given.command == "set-version":
            set_version(given.version)
        elif given.command == "check":
            check()
        elif given.command == "dist":
            _built(dist)
        else:
            _built(release)
            print(_next_steps())
    except ReleaseError as error:
        print(f"tools.release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
