"""The scenario of starting: time to /readyz and to the first list, memory when idle and with objects."""

import time
from collections.abc import Callable

from benchmarks.meter import Record, usage
from benchmarks.population import ensure
from benchmarks.servers import Server, start, stop

SETTLING = 3.0
"""Seconds after which memory is looked at."""


def measure_empty(server: Server) -> Record:
    """Starts a server that has nothing yet, and leaves it running."""
    ready, listed = start(server)
    time.sleep(SETTLING)
    used = usage(server.target.pids)
    return {"ready_s": ready, "first_list_s": listed, "rss_idle_mb": used.rss, "cpu_start_s": used.cpu_seconds}


def measure(server: Server, *, objects: int = 10_000, say: Callable[[str], None]) -> Record:
    """Empty, with objects, and after a restart over them."""
    try:
        found = measure_empty(server)
        say(f"{server.name}: creating {objects:,} objects")
        ensure(server.target, objects, exactly=True)
        time.sleep(SETTLING)
        found |= {"objects": objects, "rss_loaded_mb": usage(server.target.pids).rss}
        stop(server)
        say(f"{server.name}: starting again with them")
        ready, listed = start(server)
        time.sleep(SETTLING)
        used = usage(server.target.pids)
        found |= {"ready_loaded_s": ready, "first_list_loaded_s": listed}
        return found | {"rss_restarted_mb": used.rss, "cpu_restart_s": used.cpu_seconds}
    finally:
        stop(server)
