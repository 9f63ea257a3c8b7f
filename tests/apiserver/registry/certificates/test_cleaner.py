"""Old requests are removed as kube-controller-manager removes them."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery import certificates
from clusterregistry.apiserver.registry.certificates.cleaner import Cleaner, outdated
from clusterregistry.apiserver.storage.object_bytes import Object
from tests.api.certificates.signing_requests import condition, in_base64, signing_request
from tests.apiserver.registry.certificates.request_store import Requests, open_requests

NOW = 1_750_000_000.0
HOUR, DAY = 3600, 86400
AUTHORITY = certificates.new_authority(certificates.new_key(), now=NOW)


def ago(seconds: float) -> str:
    return dt.datetime.fromtimestamp(NOW - seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def request(*conditions: Object, age: float = 0, certificate: str = "") -> dict[str, Any]:
    status = {"conditions": list(conditions), "certificate": certificate}
    made = signing_request()
    made["metadata"]["creationTimestamp"] = ago(age)
    return made | {"status": {name: value for name, value in status.items() if value}}


def decided(kind: str, age: float) -> Object:
    return condition(kind, lastUpdateTime=ago(age))


@pytest.mark.parametrize(
    ("old", "is_old"),
    [
        (request(age=DAY), False),
        (request(age=DAY + 1), True),
        (request(decided("Own", 2 * DAY), age=2 * DAY), False),
        (request(decided("Approved", DAY), age=DAY), False),
        (request(decided("Approved", HOUR), certificate="AAAA"), False),
        (request(decided("Approved", HOUR + 1), certificate="AAAA"), True),
        (request(decided("Denied", HOUR)), False),
        (request(decided("Denied", HOUR + 1)), True),
        (request(decided("Approved", 0), decided("Failed", HOUR + 1)), True),
        (request(condition("Denied")), False),
        (request(condition("Denied", lastUpdateTime="yesterday")), False),
    ],
)
def test_the_age_at_which_a_request_is_old(old: Object, *, is_old: bool) -> None:
    assert bool(outdated(old, now=NOW)) is is_old


@pytest.fixture
async def requests(tmp_path: Path) -> AsyncIterator[Requests]:
    async with open_requests(tmp_path) as kept:
        yield kept


async def names(requests: Requests) -> list[str]:
    page = await requests.store.storage.list(requests.store.prefix)
    return [kv.key.removeprefix(requests.store.prefix) for kv in page.items]


async def test_old_requests_are_removed(requests: Requests) -> None:
    for name in ("approved", "denied", "new", "pending"):
        await requests.create(signing_request(name))
    await requests.decide("approved")
    await requests.decide("denied", "Denied", lastUpdateTime="2020-01-01T00:00:00Z")
    clock = dt.datetime.now(dt.UTC).timestamp()
    await Cleaner(requests.store, clock=lambda: clock).clean_up()
    assert await names(requests) == ["approved", "new", "pending"]
    await Cleaner(requests.store, clock=lambda: clock + 2 * DAY).clean_up()
    assert await names(requests) == ["approved"]


async def test_a_request_goes_with_the_end_of_its_certificate(requests: Requests) -> None:
    key = certificates.new_key()
    pem = certificates.client_certificate(AUTHORITY, key, user="jane", group="devs", now=NOW)
    end = NOW + certificates.LEAF_LIFETIME.total_seconds()
    for name in ("approved", "pending"):
        await requests.create(signing_request(name))
        await requests.update(name, "status", certificate=in_base64(pem))
    future = dt.datetime.fromtimestamp(end, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    await requests.decide("approved", lastUpdateTime=future)
    await requests.decide("pending", "Own", lastUpdateTime=future)
    await Cleaner(requests.store, clock=lambda: end).clean_up()
    assert await names(requests) == ["approved", "pending"]
    await Cleaner(requests.store, clock=lambda: end + 1).clean_up()
    assert await names(requests) == ["pending"]


async def test_a_request_that_changed_meanwhile_stays(requests: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    await requests.create(signing_request("a"))
    clock = dt.datetime.now(dt.UTC).timestamp() + 2 * DAY
    listed = requests.store.storage.list

    async def list_and_change(*arguments: Any, **keywords: Any) -> Any:
        page = await listed(*arguments, **keywords)
        await requests.decide("a")
        return page

    monkeypatch.setattr(requests.store.storage, "list", list_and_change)
    await Cleaner(requests.store, clock=lambda: clock).clean_up()
    monkeypatch.undo()
    assert await names(requests) == ["a"]
