"""Runs the tests marked ``skew`` behind every kube-apiserver that is pinned, and writes what works: ``make skew``.

Writes tests/system/e2e/skew.json, and docs/reference/version-skew.md from it. A capability that does not work is a
result too: it is in both, and the exit status is 1.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.system.e2e.real_programs import ETCD_PROGRAM, HELM_PROGRAM, KUBECTLS, WANTED
from tests.system.e2e.skew_outcomes import MARK, OUTCOMES
from tools import programs, skew_page
from tools.skew_page import Outcomes, Skew, Tried

_TESTS = ("tests/system/e2e", "tests/crinit")
_HOST_FAMILY = "kube-apiserver-"
_RAN = (0, 1)
"""The exit statuses with which pytest has run all tests, some of which may have failed."""

_ASK_VERSION = {
    "kube-apiserver": ["--version"],
    "etcd-server": ["--version"],
    "kubectl": ["version", "--client"],
    "helm": ["version"],
}


def hosts() -> list[str]:
    """The releases of kube-apiserver in the versions file, newest first."""
    pinned = [name for name in programs.known_to_build() if name.startswith(_HOST_FAMILY)]
    releases = [name.removeprefix(_HOST_FAMILY) for name in pinned]
    return sorted(releases, key=lambda release: [int(part) for part in release.split(".")], reverse=True)


def program_names() -> list[str]:
    kubectls = [f"kubectl-{release}" for release in KUBECTLS]
    return [*(_HOST_FAMILY + release for release in hosts()), *kubectls, HELM_PROGRAM, ETCD_PROGRAM]


def pin(name: str) -> str:
    """What the versions file says of a program."""
    built = programs.known_to_build().get(name)
    return built.at if built else programs.find(name).package


def tried(name: str) -> Tried:
    """A program's pin, and the version that the program itself prints."""
    path = programs.ensure(name)
    command = [str(path), *_ASK_VERSION[name.rpartition("-")[0]]]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"\d+\.\d+\.\d+", printed)
    assert found, f"{name} prints no version: {printed}"
    return Tried(pinned=pin(name), version=found[0])


def outcomes(host: str) -> Outcomes:
    """Runs the tests behind one host cluster."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "outcomes.json"
        # Without the variables that name other programs: the pinned ones are to be tried.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("E2E_")}
        environ = {**inherited, WANTED: "1", "E2E_HOST": host, OUTCOMES: str(file)}
        command = [sys.executable, "-m", "pytest", "-p", "tests.system.e2e.skew_outcomes", "-m", MARK, *_TESTS]
        done = subprocess.run(command, check=False, env=environ)
        if done.returncode not in _RAN:
            raise programs.ProgramError(f"the tests behind {host} did not run: pytest ended with {done.returncode}")
        found: Outcomes = json.loads(file.read_text())
    return found


def main() -> int:
    try:
        versions = {name: tried(name) for name in program_names()}
        found = {}
        for host in hosts():
            print(f"==> Behind kube-apiserver {host}, with kubectl {', '.join(KUBECTLS)}", flush=True)
            found[host] = outcomes(host)
    except (programs.ProgramError, OSError) as problem:
        print(f"skew: {problem}", file=sys.stderr)
        return 1
    skew = Skew(versions, found)
    skew_page.DATA.write_text(skew.to_json(), encoding="utf-8")
    skew_page.write(skew)
    print("\n".join(skew_page.table(skew)))
    return 0 if skew.everything_works() else 1


if __name__ == "__main__":
    sys.exit(main())
