"""Prints the part of requirements.lock that some packages need, with its hashes.

    python tools/locked.py              what the project needs to run, and nothing of what it is tested with
    python tools/locked.py hatchling    what one package of the lock needs

The lock says of each package what it is there for ("via"). Only the standard library is used, so that this works
before anything is installed.
"""

import pathlib
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).parents[1]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Locked:
    """One package: its lines in the lock, and those that need it."""

    lines: tuple[str, ...]
    via: frozenset[str]


def normal(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read(lock: str) -> dict[str, Locked]:
    """The packages of a lock by their names."""
    blocks: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in lock.splitlines():
        if found := _NAME.match(line):
            lines = blocks.setdefault(normal(found.group()), [])
        lines.append(line)
    return {name: _locked(held) for name, held in blocks.items()}


def _locked(lines: Iterable[str]) -> Locked:
    kept = tuple(line for line in lines if not line.lstrip().startswith("#"))
    comments = (line.lstrip("# ").removeprefix("via").strip() for line in lines if line.lstrip().startswith("#"))
    return Locked(kept, frozenset(normal(found.group()) for each in comments if (found := _NAME.match(each))))


def needed(packages: Mapping[str, Locked], roots: Iterable[str]) -> list[str]:
    """The roots and all that they need, directly or not."""
    found = {normal(root) for root in roots}
    if unknown := sorted(found - packages.keys()):
        raise SystemExit(f"requirements.lock does not have {', '.join(unknown)}")
    while more := {name for name, locked in packages.items() if locked.via & found} - found:
        found |= more
    return sorted(found)


def project_dependencies() -> list[str]:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return [found.group() for each in declared if (found := _NAME.match(each))]


def main(roots: list[str]) -> None:
    packages = read((ROOT / "requirements.lock").read_text())
    for name in needed(packages, roots or project_dependencies()):
        print("\n".join(packages[name].lines))


if __name__ == "__main__":
    main(sys.argv[1:])
