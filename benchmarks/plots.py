"""The plots of a comparison: throughput, latency, CPU with the goals, and how cost grows."""

import math
from collections.abc import Iterator
from pathlib import Path

from benchmarks import servers
from benchmarks.goals import median_of, ratio_of, wanted_of
from benchmarks.results import Results
from benchmarks.svg import Line, Row, bar, line_chart, row_chart

FOLDER = "plots"
_LEGEND = {
    servers.PEER: "kube-apiserver + etcd",
    servers.SQLITE: "ours on SQLite",
    servers.ETCD: "ours on etcd",
}
_OURS = (servers.SQLITE, servers.ETCD)
_STARTUP = "startup"


def draw(results: Results) -> dict[str, str]:
    """The plots for which there are figures, by file name."""
    plots: dict[str, str] = {}
    if set(results.scenarios) - {_STARTUP}:
        plots |= {"throughput.svg": throughput(results), "latency.svg": latency(results), "cpu.svg": cpu(results)}
    if results.growth.get("objects"):
        plots["growth-objects.svg"] = growth_with_objects(results)
    if results.growth.get("watchers"):
        plots["growth-watchers.svg"] = growth_with_watchers(results)
    return plots


def write(results: Results, directory: Path) -> list[str]:
    """The names of the files that are there now; plots of earlier runs are gone."""
    folder = directory / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    plots = draw(results)
    for name, content in plots.items():
        (folder / name).write_text(content)
    return list(plots)


def _shown(results: Results) -> Iterator[str]:
    """Without the variants that look much like another."""
    for name in results.scenarios:
        if name != _STARTUP and not name.endswith("/gzip"):
            yield name


def _floor(results: Results, field: str) -> float:
    """Where bars begin: at the power of ten below the least, as the axis does."""
    values = [median_of(results.records(name, server), field) for name in _shown(results) for server in servers.NAMES]
    least = min((value for value in values if value), default=1.0)
    return float(10 ** math.floor(math.log10(least * 0.8)))


def throughput(results: Results) -> str:
    floor = _floor(results, "rps")
    rows = [
        Row(
            label=name,
            spans=[bar(median_of(results.records(name, server), "rps"), floor) for server in servers.NAMES],
        )
        for name in _shown(results)
    ]
    note = "Requests per second, for watch delivered events; more is better. A rate such as 100ps is fixed."
    return row_chart("Throughput", note, names=list(_LEGEND.values()), rows=rows)


def latency(results: Results) -> str:
    rows = [
        Row(label=name, spans=[_span(results, name, server) for server in servers.NAMES]) for name in _shown(results)
    ]
    note = "Milliseconds, from the median to the 99th percentile; less is better. Watch: from write to delivery."
    return row_chart("Latency", note, names=list(_LEGEND.values()), rows=rows)


def _span(results: Results, name: str, server: str) -> tuple[float, float] | None:
    records = results.records(name, server)
    middle, high = median_of(records, "p50_ms"), median_of(records, "p99_ms")
    return (middle, max(middle, high)) if middle and high else None


def cpu(results: Results) -> str:
    rows = [
        Row(
            label=name,
            spans=[_ratio(results, name, engine) for engine in _OURS],
            goals=[wanted_of(name, engine).get("cpu") for engine in _OURS],
        )
        for name in results.scenarios
        if name != _STARTUP
    ]
    note = "The peer's CPU per request divided by ours: at 10 ours costs a tenth. A red mark is the goal."
    return row_chart("CPU per request, peer to ours", note, names=[_LEGEND[name] for name in _OURS], rows=rows, first=1)


def _ratio(results: Results, name: str, engine: str) -> tuple[float, float] | None:
    ratio = ratio_of(results.records(name, servers.PEER), results.records(name, engine), "cpu_us")
    return (min(1.0, ratio.median), max(1.0, ratio.median)) if ratio else None


def growth_with_objects(results: Results) -> str:
    by_count = results.growth["objects"]
    kinds = list(dict.fromkeys(kind for records in by_count.values() for kind in records))
    lines = [
        Line(
            name="list, per object" if kind == "list" else kind,
            points=[
                (float(count), records[kind]["cpu_us"] / (int(count) if kind == "list" else 1))
                for count, records in by_count.items()
                if records.get(kind, {}).get("cpu_us")
            ],
        )
        for kind in kinds
    ]
    note = "Microseconds of CPU per request; level is best. The selector always finds 100 objects."
    return line_chart("Cost as objects grow in number", note, across="objects in the registry", lines=lines)


def growth_with_watchers(results: Results) -> str:
    by_count = results.growth["watchers"]

    def points(field: str) -> list[tuple[float, float]]:
        return [(float(count), record[field]) for count, record in by_count.items() if record.get(field, 0) > 0]

    lines = [
        Line(name="CPU per delivered event, us", points=points("cpu_us")),
        Line(name="memory per idle watch, KB", points=points("rss_per_watch_kb")),
        Line(name="p99 of delivery, ms", points=points("p99_ms")),
    ]
    note = "Events at full speed. The 99th percentile counts from the sending of the write."
    return line_chart("Cost as watches grow in number", note, across="watches", lines=lines)
