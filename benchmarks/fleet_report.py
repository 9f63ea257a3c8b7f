"""The part of RESULTS.md on status controllers, and its goals."""

from collections.abc import Iterator

from benchmarks.goals import Judged, fleet_limits, short
from benchmarks.markdown import table
from benchmarks.meter import Record
from benchmarks.results import Results

_TITLES = {
    "controller_cpu_pct": "controller, % of a core",
    "controller_rss_mb": "controller, MB",
    "registry_cpu_pct": "registry, % of a core",
    "registry_rss_mb": "registry, MB",
    "simulator_cpu_pct": "simulated members, % of a core",
    "status_writes_per_s": "writes of status a second",
    "first_observations_s": "until each was observed once, s",
    "gap_p50_s": "between two observations of a healthy member, median, s",
    "gap_p99_s": "between two observations of a healthy member, 99th percentile, s",
    "gap_max_s": "between two observations of a healthy member, longest, s",
    "death_p50_s": "until a death is shown, median, s",
    "death_p99_s": "until a death is shown, 99th percentile, s",
    "death_max_s": "until a death is shown, longest, s",
    "not_ready_pct": "healthy members not shown as Ready, %",
}


def fleet_report(results: Results) -> Iterator[str]:
    record = results.fleet
    yield "## Status controllers"
    yield (
        f"{record['members']:,} simulated members, each observed every 30 s, one percent of them each dead, hanging "
        f"and slow;\nthe registry on SQLite, all on one machine, for {record['seconds']:.0f} s. "
        f"Measured on {record['when']} by `make bench-fleet`."
    )
    yield "\n".join(
        f"- {name}: {judged.figure}, wanted {judged.wanted}: {judged.verdict}" for name, judged in judge_fleet(results)
    )
    yield table(["", ""], fleet_rows(record))


def fleet_rows(record: Record) -> list[list[str]]:
    return [[title, short(record.get(field))] for field, title in _TITLES.items()]


def judge_fleet(results: Results) -> Iterator[tuple[str, Judged]]:
    """Every goal that the run says something of; none without one."""
    record = results.fleet
    for field, limit in fleet_limits().items() if record else ():
        yield _TITLES[field], Judged(f"at most {limit:g}", short(record[field]), record[field] <= limit)
