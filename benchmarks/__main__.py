"""Measures what requests cost a server.

    make bench                                                      # our server alone
    make bench ARGS='--scenario get,list_1000 --time 0.5 --engine etcd'
    make bench-compare                                              # beside kube-apiserver: writes RESULTS.md
    make bench-compare ARGS='--time 0.4 --rounds 1'                 # shorter
    make bench-compare ARGS=--render                                # RESULTS.md again, from results.json
    make bench-growth                                               # with more and more objects and watches
    make bench-floor                                                # beside the least that a server in Python does
    make bench-fleet                                                # a status controller with 5,000 simulated members

On loopback and free ports, in a scratch directory that is gone afterwards. Small requests are made by wrk (Debian's
package of that name).
"""

import argparse
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import disk, load, page, servers, wrk
from benchmarks.comparison import STARTUP, Comparison
from benchmarks.driver import LoadError
from benchmarks.fleet import MEMBERS, Fleet
from benchmarks.fleet_report import fleet_rows
from benchmarks.growth import OBJECTS, WATCHERS, Growth
from benchmarks.markdown import text_table
from benchmarks.ours import OwnRun
from benchmarks.progress import say
from benchmarks.results import Results, ResultsError, reduced
from benchmarks.scenarios import Scenario, UnknownScenarioError, choose, matches, scenarios
from benchmarks.servers import Workshop
from tools.programs import ProgramError

_HERE = Path(__file__).parent


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", required=True)
    ours = commands.add_parser("ours", help="our server alone, beside recorded figures of the peer")
    compare = commands.add_parser("compare", help="ours and the peer in one run, scenario by scenario")
    growth = commands.add_parser("growth", help="ours with more and more objects and watches")
    loading = commands.add_parser("load", help="load on servers that run already")
    floor = commands.add_parser("floor", help="heartbeats, watches and reads: ours and the least server in turns")
    fleet = commands.add_parser("fleet", help="a status controller with simulated members")
    on_disk = commands.add_parser("disk", help="how long the disk takes to keep a small write")
    on_disk.add_argument("directory", type=Path, nargs="?", default=Path())
    for command in (ours, compare, loading):
        command.add_argument("--scenario", default="*", help="comma separated: get is get/c1 ..., globs are allowed")
        command.add_argument("--list", action="store_true", help="name the scenarios and end")
    for command in (ours, growth, loading, floor, on_disk):
        command.add_argument("--time", type=_positive, default=1.0, help="factor on all durations")
    for command in (ours, growth):
        command.add_argument("--engine", choices=(servers.SQLITE, servers.ETCD), default=servers.SQLITE)
    for command in (ours, compare, growth):
        command.add_argument("--etcd", type=_program, metavar="FILE", help="another etcd than the one that is fetched")
    floor.add_argument("--rounds", type=_count, default=3, help="default 3")
    _add_to_compare(compare)
    _add_to_growth(growth)
    fleet.add_argument("--members", type=_count, default=MEMBERS, help=f"default {MEMBERS}")
    fleet.add_argument("--seconds", type=_positive, default=180.0, help="of the steady state; default 180")
    fleet.add_argument("--into", type=Path, default=_HERE, help="directory of the results; default benchmarks/")
    load.add_arguments(loading)
    return top


def _add_to_compare(compare: argparse.ArgumentParser) -> None:
    compare.add_argument("--time", type=_positive, default=0.5, help="factor on all durations; default 0.5")
    compare.add_argument("--rounds", type=_count, default=2, help="default 2")
    compare.add_argument(
        "--minutes", type=_positive, default=25.0, help="no second or repeated rounds beyond; default 25"
    )
    compare.add_argument("--servers", default=",".join(servers.NAMES), help="some of them, in the order of a round")
    compare.add_argument("--objects", type=_count, default=10_000, help="of the start-up; default 10000")
    compare.add_argument("--growth", action="store_true", help="how cost grows, too")
    compare.add_argument("--render", action="store_true", help="write RESULTS.md and plots again, measure nothing")
    compare.add_argument("--into", type=Path, default=_HERE, help="directory for the results; default benchmarks/")
    compare.add_argument("--kube-apiserver", type=_program, metavar="FILE", help="another than the one that is built")


def _add_to_growth(growth: argparse.ArgumentParser) -> None:
    growth.add_argument("--objects", type=_counts, default=OBJECTS, help="comma separated, each larger; 0 for none")
    growth.add_argument("--watchers", type=_counts, default=WATCHERS, help="comma separated; 0 for none")
    growth.add_argument("--into", type=Path, default=_HERE, help="directory of the results; default benchmarks/")


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 1000:  # noqa: PLR2004 - a run must end some day
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0 and below 1000")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def _counts(text: str) -> tuple[int, ...]:
    return () if text == "0" else tuple(sorted(_count(each) for each in text.split(",")))


def _program(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return Path(text).resolve()


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when it has measured, 1 when it could not, 2 when it was asked for what is not there."""
    options = parser().parse_args(arguments)
    try:
        return _COMMANDS[options.command](options)
    except (UnknownScenarioError, ResultsError) as error:
        say(f"error: {error}")
        return 2
    except (LoadError, ProgramError, OSError) as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted; the servers have ended. A page of what was measured: make bench-compare ARGS=--render")
        return 130


def _chosen(options: argparse.Namespace, patterns: str | None = None) -> list[Scenario]:
    chosen = choose(scenarios(options.time), options.scenario if patterns is None else patterns)
    if options.list:
        print("\n".join(scenario.name for scenario in chosen))
        return []
    if not wrk.is_there():
        say(wrk.MISSING)
    return chosen


def _ours(options: argparse.Namespace) -> int:
    chosen = _chosen(options)
    if not chosen:
        return 0
    with _scratch() as directory:
        run = OwnRun(workshop=Workshop(directory, options.etcd), engine=options.engine, say=say)
        run.run(chosen)
    print(run.table())
    return 1 if run.failed else 0


def _compare(options: argparse.Namespace) -> int:
    if options.render:
        return _render(options.into)
    patterns = [pattern for pattern in options.scenario.split(",") if pattern]
    others = ",".join(pattern for pattern in patterns if pattern != STARTUP)
    chosen = _chosen(options, others)
    if options.list:
        return 0
    with_start = any(matches(STARTUP, pattern) for pattern in patterns)
    names = _server_names(options.servers)
    results = Results.new(factor=options.time, rounds=options.rounds)
    with _scratch() as directory:
        workshop = Workshop(directory, options.etcd, options.kube_apiserver)
        Comparison(
            workshop=workshop,
            results=results,
            into=options.into,
            say=say,
            names=names,
            rounds=options.rounds,
            minutes=options.minutes,
        ).run(chosen, objects_at_start=options.objects if with_start else 0)
        if options.growth:
            _run_growth(Growth(workshop=workshop, results=results, into=options.into, say=say))
    return _render(options.into)


def _server_names(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in servers.NAMES]
    if unknown or not names:
        raise UnknownScenarioError(f"no server is named {', '.join(unknown)}; there are: {', '.join(servers.NAMES)}")
    return names


def _growth(options: argparse.Namespace) -> int:
    """Adds to the results of a comparison where there are some."""
    try:
        results = Results.read(options.into)
    except ResultsError:
        results = Results.new(factor=options.time, rounds=1)
    with _scratch() as directory:
        growth = Growth(
            workshop=Workshop(directory, options.etcd),
            results=results,
            into=options.into,
            say=say,
            engine=options.engine,
            factor=options.time,
            object_counts=options.objects,
            watcher_counts=options.watchers,
        )
        _run_growth(growth)
    return _render(options.into)


def _fleet(options: argparse.Namespace) -> int:
    """Adds to the results of a comparison where there are some."""
    try:
        results = Results.read(options.into)
    except ResultsError:
        results = Results.new(factor=1.0, rounds=1)
    with _scratch() as directory:
        fleet = Fleet(workshop=Workshop(directory), say=say, members=options.members, seconds=options.seconds)
        results.document["fleet"] = {"when": time.strftime("%Y-%m-%d", time.gmtime()), **reduced(fleet.run())}
    results.write(options.into)
    print(text_table(fleet_rows(results.fleet)))
    return _render(options.into)


def _run_growth(growth: Growth) -> None:
    """What was measured before it failed is worth a page, too."""
    try:
        growth.run()
    except (LoadError, OSError) as error:
        say(f"error: growth ends here: {error}")


def _load(options: argparse.Namespace) -> int:
    chosen = _chosen(options)
    return load.run(options, chosen, say) if chosen else 0


def _floor(options: argparse.Namespace) -> int:
    (mixed,) = choose(scenarios(options.time), "mixed")
    with _scratch() as directory, ExitStack() as stack:
        workshop = Workshop(directory)
        names = (servers.BARE, servers.SQLITE)
        targets = [stack.enter_context(servers.running(workshop.make(name))) for name in names]
        found: list[load.Found] = [{} for _ in targets]
        load.take_turns(mixed, targets, found, rounds=options.rounds, say=say)
    print("\n\n".join(load.tables(targets, found)))
    return 0 if all(found) else 1


def _disk(options: argparse.Namespace) -> int:
    print(disk.table(disk.measure(options.directory, seconds=1.5 * options.time)))
    return 0


def _render(into: Path) -> int:
    print(f"written: {page.write(Results.read(into), into)}")
    return 0


@contextmanager
def _scratch() -> Iterator[Path]:
    """A directory for the time of a run, with as many open files as are allowed, and an orderly end on SIGTERM."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    former = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with tempfile.TemporaryDirectory(prefix="benchmarks-", ignore_cleanup_errors=True) as directory:
            yield Path(directory)
    finally:
        signal.signal(signal.SIGTERM, former)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "ours": _ours,
    "compare": _compare,
    "growth": _growth,
    "load": _load,
    "floor": _floor,
    "disk": _disk,
    "fleet": _fleet,
}


if __name__ == "__main__":
    sys.exit(main())
