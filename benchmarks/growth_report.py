"""The part of RESULTS.md on growth, and its goals."""

from collections.abc import Iterator

from benchmarks.goals import Judged, growth_limit, short
from benchmarks.markdown import table
from benchmarks.meter import Record
from benchmarks.results import Results

_KINDS = ("get", "list", "list_selector", "patch", "create")
_TITLES = {"list": "list, per object", "list_selector": "list of 100 by label"}


def cost(kind: str, count: str, record: Record) -> float:
    """Per request; of a list per object, since that is what it contains."""
    found: float = record["cpu_us"]
    return found / int(count) if kind == "list" else found


def growth_report(results: Results) -> Iterator[str]:
    growth = results.growth
    yield "## How cost grows"
    yield "\n".join(
        f"- {name}: {judged.figure}, wanted {judged.wanted}: {judged.verdict}" for name, judged in judge_growth(results)
    )
    if growth.get("objects"):
        yield (
            "CPU in us per request, by the number of objects: the medians of rounds in which servers with so many took "
            "turns.\nThe factor is the last by the least."
        )
        yield _objects_table(results)
    if growth.get("watchers"):
        yield "By the number of watches, events at full speed:"
        yield _watchers_table(results)
    if growth.get("stall"):
        yield (
            "How long another client waits for a small GET while everything is listed, in ms. It shares the cores with "
            "the server and with the one who lists."
        )
        yield _stall_table(results)


def _objects_table(results: Results) -> str:
    by_count = results.growth["objects"]
    rows = []
    for kind in _KINDS:
        costs = _costs(results, kind)
        cells = [short(costs.get(count)) for count in by_count]
        rows.append([_TITLES.get(kind, kind), *cells, short(_factor(list(costs.values())))])
    return table(["", *(f"{int(count):,}" for count in by_count), "factor"], rows)


def _costs(results: Results, kind: str) -> dict[str, float]:
    by_count = results.growth.get("objects", {})
    return {
        count: cost(kind, count, records[kind])
        for count, records in by_count.items()
        if records.get(kind, {}).get("cpu_us")
    }


def _factor(costs: list[float]) -> float | None:
    """By the least, not by the first: with few objects, what every request costs hides what each object does."""
    return costs[-1] / min(costs) if len(costs) > 1 else None


def _watchers_table(results: Results) -> str:
    head = ["watches", "CPU us per event", "KB per idle watch", "p50 ms", "p99 ms", "delivered %", "others %"]
    fields = ("cpu_us", "rss_per_watch_kb", "p50_ms", "p99_ms", "delivered_pct", "foreign_cpu_pct")
    return table(
        head,
        [
            [f"{int(count):,}", *(short(record.get(field)) for field in fields)]
            for count, record in results.growth["watchers"].items()
        ],
    )


def _stall_table(results: Results) -> str:
    fields = ("list_seconds", "p50_ms", "p99_ms", "max_ms", "quiet_p99_ms", "quiet_max_ms")
    head = ["list as", "list takes s", "p50", "p99", "longest", "p99 without a list", "longest without"]
    rows = [[name, *(short(record.get(field)) for field in fields)] for name, record in results.growth["stall"].items()]
    return table(head, rows)


def judge_growth(results: Results) -> Iterator[tuple[str, Judged]]:
    growth = results.growth
    limit = growth_limit("factor")
    for kind in _KINDS:
        factor = _factor(list(_costs(results, kind).values()))
        if factor is not None:
            name = f"growth of {_TITLES.get(kind, kind)}"
            yield name, Judged(f"at most {limit:g}x with the most objects", f"{short(factor)}x", factor <= limit)
    if growth.get("watchers"):
        count, record = list(growth["watchers"].items())[-1]
        most = growth_limit("kb_per_idle_watch")
        used = record["rss_per_watch_kb"]
        yield (
            f"memory per idle watch of {int(count):,}",
            Judged(f"under {most:g} KB", f"{short(used)} KB", used < most),
        )
    for name, record in growth.get("stall", {}).items():
        longest = growth_limit("stall_ms")
        yield (
            f"longest wait while {record['objects']:,} objects are listed as {name}",
            Judged(f"under {longest:g} ms", f"{short(record['max_ms'])} ms", record["max_ms"] < longest),
        )
