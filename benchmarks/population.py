"""Brings a collection to just so many objects, and empties it again."""

import json
from collections.abc import Sequence
from http import HTTPStatus

from benchmarks import objects
from benchmarks.driver import Load, LoadError, Sending, call, drive
from benchmarks.meter import Meter
from benchmarks.objects import PATH, PREFIX, name_of
from benchmarks.targets import Target

_AT_ONCE = 32


def names(target: Target) -> list[str]:
    """All names in the collection that are ours, by pages of metadata."""
    found: list[str] = []
    following = ""
    while True:
        path = f"{PATH}?limit=1000" + (f"&continue={following}" if following else "")
        status, body = call(target, "GET", path, accept=objects.METADATA_LIST)
        if status != HTTPStatus.OK:
            raise LoadError(f"list: {status} {body[:300]!r}")
        page = json.loads(body)
        every = (item["metadata"]["name"] for item in page["items"] or ())
        found += [name for name in every if name.startswith(PREFIX)]
        following = page["metadata"].get("continue", "")
        if not following:
            return found


def delete(target: Target, which: Sequence[str]) -> None:
    source = (Sending(target.request("DELETE", f"{PATH}/{name}")) for name in which)
    driven = drive(target, Load(source=source, connections=_AT_ONCE))
    if driven.errors:
        raise LoadError(f"delete: {driven.error_sample}")


def clean(target: Target) -> None:
    delete(target, names(target))
    target.count = 0


def adopt(target: Target) -> None:
    """Takes over what an earlier run left when it is a clean sequence of objects; deletes what else is ours."""
    have = set(names(target))
    target.count = next(number for number in range(len(have) + 1) if name_of(number) not in have)
    delete(target, sorted(have - {name_of(number) for number in range(target.count)}))


def ensure(target: Target, count: int, *, exactly: bool) -> None:
    """At least, or exactly, so many objects bench-000000 and so on, each with its status."""
    if target.count > count and exactly:
        delete(target, [name_of(number) for number in range(count, target.count)])
        target.count = count
    if target.count < count:
        _create(target, count)


def _create(target: Target, count: int) -> None:
    def created(number: int | None, status: int, body: bytes) -> Sending | None:
        if number is None:
            return None
        if status >= HTTPStatus.BAD_REQUEST:
            raise LoadError(f"create: {status} {body[:300]!r}")
        path = f"{PATH}/{name_of(number)}/status"
        its_status = {"status": objects.status_of(number)}
        return Sending(target.request("PATCH", path, its_status, content_type=objects.MERGE_PATCH))

    missing = range(target.count, count)
    source = (Sending(target.request("POST", PATH, objects.cluster(number)), number) for number in missing)
    with Meter(target) as meter:
        driven = drive(target, Load(source=source, connections=_AT_ONCE, on_answer=created))
    if driven.errors:
        raise LoadError(f"populate: {driven.error_sample}")
    target.populated[str(count)] = {
        "writes": driven.count,
        "seconds": driven.seconds,
        "rss_before_mb": meter.before.rss,
        "rss_after_mb": meter.after.rss,
        "pss_after_mb": meter.after.pss,
    }
    target.count = count
