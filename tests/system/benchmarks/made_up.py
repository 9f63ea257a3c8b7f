"""Results as a run would leave them, small and made up."""

from typing import Any

from benchmarks.results import Results, failure


def record(
    cpu_us: float, *, rps: float = 100.0, p99_ms: float = 10.0, others: float = 5.0, **more: Any
) -> dict[str, Any]:
    return {"cpu_us": cpu_us, "rps": rps, "p50_ms": 1.0, "p99_ms": p99_ms, "foreign_cpu_pct": others} | more


def started(ready: float, idle: float, loaded: float) -> dict[str, Any]:
    return {"ready_s": ready, "rss_idle_mb": idle, "rss_loaded_mb": loaded, "objects": 10_000}


def some_results() -> Results:
    results = Results.new(factor=0.5, rounds=2)
    results.document["versions"] = {"peer": "v1.36.4", "sqlite": "v0.1.0", "etcd itself": "3.6.8"}
    for peer, ours in ((1500.0, 75.0), (1300.0, 50.0)):
        results.add("get/c16", "peer", record(peer, rps=1000, others=31))
        results.add("get/c16", "sqlite", record(ours, rps=9000))
    results.add("create/c16", "peer", record(3000, rps=500))
    results.add("create/c16", "sqlite", record(200, rps=1500))
    results.add("create/c16", "etcd", record(600, rps=1500))
    results.add("mixed", "peer", record(8000, cpu_pct=95.0))
    results.add("mixed", "sqlite", record(1000, cpu_pct=11.0))
    results.add("mixed", "etcd", failure("no answer for 30 s\n/some/where: a log"))
    results.add("startup", "peer", started(5.0, 340.0, 1300.0))
    results.add("startup", "sqlite", started(0.4, 60.0, 150.0))
    results.document["growth"] = {
        "objects": {
            "100": {"get": record(60), "list": record(500)},
            "10000": {"get": record(120), "list": record(30_000)},
        },
        "watchers": {"10": record(40, rss_per_watch_kb=0.0), "5000": record(5, rss_per_watch_kb=42.0)},
        "stall": {"JSON": {"objects": 100_000, "max_ms": 61.0, "p99_ms": 4.0}},
    }
    return results
