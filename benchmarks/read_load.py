"""Scenarios of reading: one object, lists, pages."""

import re
import statistics
import time
from collections.abc import Mapping

from benchmarks import wrk
from benchmarks.driver import Load, Sending, forever, measured
from benchmarks.meter import Record
from benchmarks.objects import PATH, name_of
from benchmarks.targets import NO_FIELDS, Target

_SMALL, _MEDIUM = 100, 1000
_CONTINUE = re.compile(rb'"continue":\s*"([^"]+)"')
SELECTED = f"{PATH}?labelSelector=bucket%3Db42"
"""One of a hundred objects."""


def get(target: Target, *, connections: int, factor: float) -> Record:
    return wrk.get_repeatedly(target, f"{PATH}/{name_of(7)}", connections=connections, seconds=3 * factor)


def select(target: Target, *, connections: int, factor: float) -> Record:
    return wrk.get_repeatedly(
        target, SELECTED, connections=connections, seconds=(2 if connections == 1 else 3) * factor
    )


def list_all(
    target: Target, *, count: int, connections: int, factor: float, fields: Mapping[str, str] = NO_FIELDS
) -> Record:
    """The whole list of so many objects, small ones through wrk."""
    if count <= _SMALL:
        return wrk.get_repeatedly(target, PATH, connections=connections, seconds=2 * factor, fields=fields)
    request = target.request("GET", PATH, **fields)
    medium = count <= _MEDIUM
    load = Load(
        source=forever(lambda number: Sending(request, number)),
        connections=connections,
        seconds=(2.5 if medium else 3) * factor,
        at_least=3 * connections if medium else max(3, connections),
    )
    return measured(target, load)


def page(target: Target, *, factor: float) -> Record:
    """Walks through all pages, again and again; a request is one page."""
    walks: list[tuple[float, int]] = []

    def next_page(tag: tuple[float, int], _status: int, body: bytes) -> Sending | None:
        begun, number = tag
        found = _CONTINUE.search(body[:2000] + body[-2000:])
        if found:
            following = target.request("GET", f"{PATH}?limit=500&continue={found[1].decode()}")
            return Sending(following, (begun, number + 1))
        walks.append((time.monotonic() - begun, number))
        return None

    first = target.request("GET", f"{PATH}?limit=500")
    load = Load(
        source=forever(lambda _: Sending(first, (time.monotonic(), 1))),
        keep=True,
        on_answer=next_page,
        seconds=3 * factor,
        at_least=1,
    )
    record = measured(target, load)
    return record | {"walk_seconds": statistics.median(walk[0] for walk in walks), "pages": walks[0][1]}
