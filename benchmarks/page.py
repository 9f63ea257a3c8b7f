"""RESULTS.md, made of what results.json holds."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import goals, plots, servers
from benchmarks.fleet_report import fleet_report, judge_fleet
from benchmarks.goals import Judged, median_of, ratio_of, short
from benchmarks.growth_report import growth_report, judge_growth
from benchmarks.markdown import table
from benchmarks.meter import NOISY, Record
from benchmarks.results import ETCD_ITSELF, Results

FILE = "RESULTS.md"
STARTUP = "startup"

_ENGINES = {servers.SQLITE: "SQLite", servers.ETCD: "etcd"}
_HOW_TO_READ = """\
CPU is the processor time of all processes of a server for one request, for `watch` for one event that is delivered to
one watch. The ratio is the peer's to ours, of the medians; behind it the lowest and the highest ratio of the rounds,
which is the noise. Throughput is ours in terms of the peer's, as far as the client, which shares the cores, lets it be
seen. *Others* is what other processes took meanwhile, in percent of one core, the idle servers of the comparison
included. A round in which that is above {noisy:.0f} is made again, as far as time allows, and the one with less of it
counts, whatever it found; where it stays above there is an exclamation mark, and such figures should not be quoted.
Absolute figures mean little on a shared machine, ratios measured within seconds of each other do. A name ends with the
number of connections (`c16`), for `watch` with the number of watches and the rate of writes."""


def write(results: Results, directory: Path) -> Path:
    """RESULTS.md and its plots; says where."""
    drawn = plots.write(results, directory)
    path = directory / FILE
    path.write_text("\n\n".join(_parts(results, drawn)) + "\n")
    return path


def _parts(results: Results, drawn: Sequence[str]) -> Iterator[str]:
    yield "# What the registry costs, beside kube-apiserver"
    yield _origin(results)
    yield _summary(results)
    yield f"## How to read it\n\n{_HOW_TO_READ.format(noisy=NOISY)}"
    for engine in _engines(results):
        yield f"## Ours on {_ENGINES[engine]}"
        yield comparison_table(results, engine)
    if STARTUP in results.scenarios:
        yield "## Start-up and memory"
        yield startup_table(results)
    yield from _images(drawn, ("cpu.svg", "throughput.svg", "latency.svg"))
    if results.growth:
        yield from growth_report(results)
        yield from _images(drawn, ("growth-objects.svg", "growth-watchers.svg"))
    if results.fleet:
        yield from fleet_report(results)
    yield from _failures(results)


def _engines(results: Results) -> list[str]:
    return [
        engine
        for engine in _ENGINES
        if any(engine in by_server for name, by_server in results.scenarios.items() if name != STARTUP)
    ]


def _images(drawn: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if name in drawn:
            title = name.removesuffix(".svg").replace("-", " with ")
            yield f"![{title}]({plots.FOLDER}/{name})"


def _origin(results: Results) -> str:
    document = results.document
    machine, versions, settings = document["machine"], document["versions"], document["settings"]
    peer = ""
    if servers.PEER in versions:
        peer = (
            f"\nThe peer is kube-apiserver {versions[servers.PEER]} with etcd {versions[ETCD_ITSELF]}. It serves the "
        )
        peer += "same API as a custom resource definition."
    return (
        f"Measured on {document['when']} by `make bench-compare`, which writes this page; `results.json` has every "
        f"figure.\nMachine: {machine['cores']} cores, {machine['memory_gb']} GB of memory, {machine['architecture']}, "
        f"Python {document['python']}. Rounds: {settings['rounds']}, durations times {settings['time']:g}.{peer}\n"
        f"All servers are at their defaults: TLS, authentication, authorization, metrics and durable writes."
    )


def judged_goals(results: Results) -> Iterator[tuple[str, Judged]]:
    """Every goal that the results say something of, with the name of what it is for."""
    for name, by_server in results.scenarios.items():
        for engine, title in _ENGINES.items():
            if engine in by_server:
                for judged in _judge(results, name, engine):
                    yield f"{name} on {title}", judged
    yield from judge_growth(results)
    yield from judge_fleet(results)


def _judge(results: Results, name: str, engine: str) -> list[Judged]:
    return goals.judge(name, engine, peer=results.records(name, servers.PEER), ours=results.records(name, engine))


def _summary(results: Results) -> str:
    every = list(judged_goals(results))
    met = sum(judged.met is True for _, judged in every)
    lines = [f"**{met} of {len(every)} goals are met.**"]
    missed = [(name, judged) for name, judged in every if judged.met is not True]
    if missed:
        lines += ["Not met:", ""]
        lines += [f"- {name}: {judged.figure}, wanted {judged.wanted} ({judged.verdict})" for name, judged in missed]
    return "\n".join(lines)


def comparison_table(results: Results, engine: str) -> str:
    head = ["scenario", "peer CPU us", "ours CPU us", "ratio", "over rounds", "others %", "throughput"]
    head += ["p99 ms peer", "p99 ms ours", "goal", ""]
    names = [name for name in results.scenarios if name != STARTUP]
    return table(head, [_row(results, name, engine) for name in names], words=2)


def _row(results: Results, name: str, engine: str) -> list[str]:
    peer, ours = results.records(name, servers.PEER), results.records(name, engine)
    ratio, throughput = ratio_of(peer, ours, "cpu_us"), ratio_of(ours, peer, "rps")
    judged = _judge(results, name, engine)
    return [
        f"`{name}`",
        _with_range(peer, "cpu_us"),
        _with_range(ours, "cpu_us"),
        f"**{ratio}**" if ratio else "-",
        ratio.noise if ratio else "-",
        _others([*peer, *ours]),
        str(throughput) if throughput else "-",
        short(median_of(peer, "p99_ms")),
        short(median_of(ours, "p99_ms")),
        "<br>".join(_goal(each) for each in judged),
        "<br>".join(each.verdict for each in judged),
    ]


def _goal(judged: Judged) -> str:
    """With the figure, where it is not in a column of its own."""
    return f"{judged.wanted}: {judged.figure}" if "core" in judged.wanted else judged.wanted


def _with_range(records: Sequence[Record], name: str) -> str:
    values = [record[name] for record in records if record.get(name) is not None]
    if len(values) < 2:  # noqa: PLR2004 - one value has no range
        return short(median_of(records, name))
    return f"{short(median_of(records, name))} ({short(min(values))} to {short(max(values))})"


def _others(records: Sequence[Record]) -> str:
    values = [record["foreign_cpu_pct"] for record in records if "foreign_cpu_pct" in record]
    if not values:
        return "-"
    return f"{max(values):.0f}" + (" !" if max(values) > NOISY else "")


def startup_table(results: Results) -> str:
    fields = {
        "ready_s": "ready, s",
        "first_list_s": "first list, s",
        "cpu_start_s": "CPU of the start, s",
        "rss_idle_mb": "memory when idle, MB",
        "rss_loaded_mb": "memory with objects, MB",
        "ready_loaded_s": "ready with objects, s",
        "rss_restarted_mb": "memory after a restart, MB",
    }
    peer = results.records(STARTUP, servers.PEER)
    engines = [engine for engine in _ENGINES if results.records(STARTUP, engine)]
    head = ["", "peer", *(cell for engine in engines for cell in (f"ours on {_ENGINES[engine]}", "ratio"))]
    rows = []
    for field, title in fields.items():
        row = [title, _with_range(peer, field)]
        for engine in engines:
            ours = results.records(STARTUP, engine)
            row += [_with_range(ours, field), str(ratio_of(peer, ours, field) or "-")]
        rows.append(row)
    judged = [f"- {each.wanted}: {each.figure}, {each.verdict}" for each in _judge(results, STARTUP, servers.SQLITE)]
    count = next((record["objects"] for record in peer if "objects" in record), 0)
    goals_of_it = "Goals, on SQLite:\n\n" + "\n".join(judged)
    return f"etcd is counted where it is needed; with objects: {count:,}.\n\n{table(head, rows)}\n\n{goals_of_it}"


def _failures(results: Results) -> Iterator[str]:
    failed = [
        f"- `{name}` on {server}: {' '.join(record['failed'].split())[:200]}"
        for name, by_server in results.scenarios.items()
        for server, records in by_server.items()
        for record in records
        if "failed" in record
    ]
    short_of = [
        f"- `{name}` on {server}: {record.get('errors', 0)} errors, {record.get('delivered_pct', 100):.0f}% delivered"
        for name, by_server in results.scenarios.items()
        for server, records in by_server.items()
        for record in records
        if record.get("errors") or record.get("delivered_pct", 100) < 98  # noqa: PLR2004 - sampled
    ]
    if failed or short_of:
        yield "## What went wrong in the run\n\n" + "\n".join([*failed, *short_of])
