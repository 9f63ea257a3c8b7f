"""Compares the real server with what was recorded from kube-apiserver, and says where it differs.

    make conformance                      everything: the replayed cases, the guide, four kubectl releases
    make conformance ARGS=--quick         the same with two kubectl releases
    make conformance ARGS='--only get/'   some cases and transcripts, by area/name

Each suite gets a server of its own, since the runners remove every cluster between two cases. What is
left out, and why, stands in tests/conformance/exclusions.toml. Exit status 1 when anything differs.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from tools import live_server, programs
from tools.processes import ProcessError

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "conformance"
GUIDE = DATA / "guide"

GUIDE_RELEASES = ("1.24", "1.27", "1.29", "1.33", "1.36")
KUBECTL_RELEASES = ("1.27", "1.29", "1.33", "1.36")
QUICK_RELEASES = ("1.27", "1.36")

SERVED = ("--runtime-config=clusterregistry.k8s.io/v1beta1=false,clusterregistry.k8s.io/v1alpha1/clustersets=false",)
"""What the server serves of its own group: the recordings were made when v1alpha1 clusters were all there was."""

TOTALS = re.compile(r"^(\d+) passed, (\d+) failed$", re.MULTILINE)
SKIPPED = re.compile(r"^(\d+) not for kubectl", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What one run of a runner gave. Skipped are transcripts for other releases of kubectl."""

    passed: int
    failed: int
    skipped: int = 0
    output: str = ""


@dataclass(frozen=True)
class Exclusions:
    """What is not compared: patterns of area/name, each with its reason."""

    replay: dict[str, str]
    kubectl: dict[str, str]

    def cases(self) -> dict[str, list[str]]:
        """The titles of the cases to replay, by area."""
        chosen: dict[str, list[str]] = {}
        for title in without(all_cases(), self.replay):
            chosen.setdefault(title.partition("/")[0], []).append(title)
        return chosen

    def transcripts(self) -> dict[str, pathlib.Path]:
        """The kubectl transcripts to run, by area/name."""
        found = all_transcripts()
        return {title: found[title] for title in without(found, self.kubectl)}


def without(titles: Iterable[str], patterns: Iterable[str]) -> list[str]:
    return [title for title in titles if not any(fnmatch.fnmatchcase(title, pattern) for pattern in patterns)]


def exclusions() -> Exclusions:
    return Exclusions(**tomllib.loads((DATA / "exclusions.toml").read_text()))


def all_cases() -> dict[str, pathlib.Path]:
    """Every case as area/name, with its file."""
    found: dict[str, pathlib.Path] = {}
    for path in sorted((DATA / "cases").glob("*.json")):
        found |= {f"{case['area']}/{case['name']}": path for case in json.loads(path.read_text())}
    return found


def all_transcripts() -> dict[str, pathlib.Path]:
    found = {}
    for path in sorted((DATA / "kubectl").glob("*.json")):
        transcript = json.loads(path.read_text())
        found[f"{transcript['area']}/{transcript['name']}"] = path
    return found


def kubectl(release: str) -> pathlib.Path:
    return programs.fetch(programs.find(f"kubectl-{release}"))


def replay(server: live_server.LiveServer, titles: list[str]) -> Outcome:
    """Replays cases of one area, which are in one file."""
    only = "^(" + "|".join(map(re.escape, titles)) + ")$"
    command = ["replay.py", "--server", server.url, "--token", live_server.ADMIN_TOKEN]
    command += ["--ca-file", str(server.ca_file), "--only", only, str(all_cases()[titles[0]])]
    return outcome(command)


def run_kubectl(server: live_server.LiveServer, *, release: str, transcripts: Iterable[pathlib.Path]) -> Outcome:
    """Runs transcripts with one release of kubectl."""
    command = ["kubectl.py", "--kubectl", str(kubectl(release)), "--kubeconfig", str(server.kubeconfig)]
    return outcome([*command, *map(str, transcripts)])


def outcome(command: list[str]) -> Outcome:
    runner = [sys.executable, str(DATA / command[0]), *command[1:]]
    done = subprocess.run(runner, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    totals = TOTALS.findall(done.stdout)
    if not totals:  # the runner itself fell over
        return Outcome(passed=0, failed=1, output=done.stdout + done.stderr)
    passed, failed = map(int, totals[-1])
    skipped = sum(map(int, SKIPPED.findall(done.stdout)))
    return Outcome(passed=passed, failed=failed, skipped=skipped, output=done.stdout)


@dataclass(frozen=True)
class Suite:
    """Some runs against one server, one after the other; each gives a row of the summary."""

    name: str
    runs: dict[str, Callable[[live_server.LiveServer], Outcome]]


def suites(*, releases: Iterable[str], only: str) -> list[Suite]:
    chosen = exclusions()
    found = [replay_suite(chosen, only), guide_suite(only)]
    found += [kubectl_suite(chosen, release=release, only=only) for release in releases]
    return [suite for suite in found if suite.runs]


def replay_suite(chosen: Exclusions, only: str) -> Suite:
    matching = {area: [title for title in titles if re.search(only, title)] for area, titles in chosen.cases().items()}
    return Suite("replay", {area: partial(replay, titles=titles) for area, titles in matching.items() if titles})


def kubectl_suite(chosen: Exclusions, *, release: str, only: str) -> Suite:
    transcripts = [path for title, path in chosen.transcripts().items() if re.search(only, title)]
    run = partial(run_kubectl, release=release, transcripts=transcripts)
    return Suite(f"kubectl {release}", {"transcripts": run} if transcripts else {})


def guide_suite(only: str) -> Suite:
    """The user guide's own commands; also with a kubectl that is too old for the transcripts."""
    releases = GUIDE_RELEASES if re.search(only, "guide/try-it-out") else ()
    run = partial(run_kubectl, transcripts=[GUIDE])
    return Suite("guide", {f"kubectl {release}": partial(run, release=release) for release in releases})


def run_suite(suite: Suite) -> dict[str, Outcome]:
    """The outcome of each run by its title; a server that does not start is a failure of the suite."""
    started, outcomes = time.monotonic(), {}
    with tempfile.TemporaryDirectory(prefix="conformance-") as directory:
        try:
            with live_server.running(pathlib.Path(directory), flags=SERVED) as server:
                for name, run in suite.runs.items():
                    outcomes[f"{suite.name}: {name}"] = run(server)
        except (ProcessError, programs.ProgramError, OSError) as problem:
            outcomes[f"{suite.name}: could not run"] = Outcome(passed=0, failed=1, output=str(problem))
    print(f"{suite.name}: done after {time.monotonic() - started:.0f} s", flush=True)
    return outcomes


def report(outcomes: dict[str, Outcome]) -> bool:
    """Prints the differences and the summary; True when there are no differences."""
    for title, result in outcomes.items():
        if result.failed:
            print(f"\n=== {title}\n{result.output.rstrip()}")
    print(
        "\nnot compared (tests/conformance/exclusions.toml):", ", ".join([*exclusions().replay, *exclusions().kubectl])
    )
    print(f"\n{'':40} passed failed skipped")
    for title, result in outcomes.items():
        print(f"{title:40} {result.passed:6} {result.failed:6} {result.skipped:7}")
    passed = sum(result.passed for result in outcomes.values())
    failed = sum(result.failed for result in outcomes.values())
    print(f"{'total':40} {passed:6} {failed:6}")
    return failed == 0 and passed > 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only kubectl {' and '.join(QUICK_RELEASES)}")
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="only cases and transcripts whose area/name matches"
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="suites to run at once (2)")
    chosen = parser.parse_args(arguments)
    selected = suites(releases=QUICK_RELEASES if chosen.quick else KUBECTL_RELEASES, only=chosen.only)
    outcomes: dict[str, Outcome] = {}
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        for results in pool.map(run_suite, selected):
            outcomes |= results
    return 0 if report(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
