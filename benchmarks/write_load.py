"""Scenarios of writing: create and delete, patches of a label, of the status, and server-side apply."""

import json
import re
from collections.abc import Iterator
from typing import Any

from benchmarks import objects
from benchmarks.driver import Load, Sending, call, forever, measured
from benchmarks.meter import Record
from benchmarks.objects import API_VERSION, PATH, fresh_numbers, name_of
from benchmarks.targets import Target

_VERSION = re.compile(rb'"resourceVersion":\s*"(\d+)"')
_SPREAD = 1000
"""Writes go over so many objects, in steps of seven."""


def spread(target: Target, number: int, *, among: int = _SPREAD) -> str:
    """The name of an object that is there, one after the other."""
    return name_of(number * 7 % min(among, target.count))


def create_and_delete(target: Target, *, connections: int, factor: float) -> dict[str, Record]:
    """Creates for a while, then deletes what was created: two records."""
    made: list[str] = []

    def creation(number: int) -> Sending:
        name = f"{objects.PREFIX}c{next(fresh_numbers)}"
        made.append(name)
        return Sending(target.request("POST", PATH, objects.cluster(number, name)), name)

    created = measured(target, Load(source=forever(creation), connections=connections, seconds=1.5 * factor))
    deletions = (Sending(target.request("DELETE", f"{PATH}/{name}"), name) for name in made)
    deleted = measured(target, Load(source=deletions, connections=connections))
    return {f"create/c{connections}": created, f"delete/c{connections}": deleted}


def patch(target: Target, *, connections: int, factor: float, among: int = _SPREAD) -> Record:
    """Merge patch of a label."""

    def one(number: int) -> Sending:
        body = b'{"metadata":{"labels":{"step":"s%d"}}}' % next(fresh_numbers)
        path = f"{PATH}/{spread(target, number, among=among)}"
        return Sending(target.request("PATCH", path, body, content_type=objects.MERGE_PATCH), number)

    return measured(target, Load(source=forever(one), connections=connections, seconds=2 * factor))


def put_status(target: Target, *, connections: int, factor: float) -> Record:
    """PUT of the status with the resourceVersion of the last answer; every connection has objects of its own."""
    known = _objects_to_put(target)
    free = list(known)

    def source() -> Iterator[Sending]:
        while True:
            name = free.pop(0)  # there are more objects than connections, so it is never empty
            body, version = known[name]
            content = body.replace(b"@RV@", version).replace(b"@V@", b"v1.36.%d" % next(fresh_numbers))
            yield Sending(target.request("PUT", f"{PATH}/{name}/status", content), name)

    def answered(name: str, _status: int, body: bytes) -> None:
        found = _VERSION.search(body)
        if found:
            known[name] = known[name][0], found[1]
        free.append(name)

    return measured(
        target,
        Load(source=source(), connections=connections, keep=True, on_answer=answered, seconds=2 * factor),
    )


def _objects_to_put(target: Target) -> dict[str, tuple[bytes, bytes]]:
    """Bodies with a place for the version and for what changes, and the version that is current."""
    _, body = call(target, "GET", f"{PATH}?limit=200")
    found: dict[str, tuple[bytes, bytes]] = {}
    for item in json.loads(body)["items"]:
        metadata: dict[str, Any] = item["metadata"]
        if not metadata["name"].startswith(f"{objects.PREFIX}0"):
            continue
        version, metadata["resourceVersion"] = metadata["resourceVersion"], "@RV@"
        item.setdefault("status", objects.status_of(0))["version"] = {"kubernetes": "@V@"}
        item |= {"apiVersion": API_VERSION, "kind": "Cluster"}
        found[metadata["name"]] = json.dumps(item, separators=(",", ":")).encode(), version.encode()
    return found


def apply(target: Target, *, connections: int, factor: float) -> Record:
    """Server-side apply with one manager; the objects exist and change each time."""

    def one(number: int) -> Sending:
        name = spread(target, number)
        user = {"kind": "ServiceAccount", "name": f"u{number}", "namespace": "default"}
        applied = {
            "apiVersion": API_VERSION,
            "kind": "Cluster",
            "metadata": {"name": name, "labels": {"applied": f"a{next(fresh_numbers)}"}},
            "spec": {"authInfo": {"user": user}},
        }
        path = f"{PATH}/{name}?fieldManager=bench-apply&force=true"
        return Sending(target.request("PATCH", path, applied, content_type=objects.APPLY_PATCH), number)

    return measured(target, Load(source=forever(one), connections=connections, seconds=2 * factor))
