"""Lists with a long selector yield to the loop by the clock, not by the number of objects."""

from __future__ import annotations

import asyncio
import time

from clusterregistry.apimachinery.meta.field_selectors import parse_field_selector
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apiserver.registry.list import ListOptions, selected
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import presented, to_stored
from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import CLUSTERS, cluster


def objects(count: int) -> list[KeyValue]:
    made = [to_stored(cluster(f"a{number}", labels={"a": "b"}, uid="u")) for number in range(count)]
    return [presented(KeyValue(f"/clusters/a{number}", value, 1)) for number, value in enumerate(made)]


async def test_a_long_selector_yields_to_the_loop_again_and_again() -> None:
    longest = ",".join(f"a!=v{number}" for number in range(1000))
    options = ListOptions(labels=parse_label_selector(longest), fields=parse_field_selector(""))
    items = objects(3000)
    filtering = asyncio.ensure_future(selected(options, items))
    slices = []
    while not filtering.done():
        begun = time.thread_time()
        await asyncio.sleep(0)
        slices.append(time.thread_time() - begun)
    assert filtering.result() == items
    assert max(slices) < sum(slices) / 5


async def test_a_short_selector_does_not_yield() -> None:
    options = ListOptions(labels=parse_label_selector("a=b"), fields=parse_field_selector(""))
    filtering = asyncio.ensure_future(selected(options, objects(100)))
    await asyncio.sleep(0)
    assert filtering.done()


def test_a_selector_of_too_many_requirements_is_a_bad_request(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", labels={"a": "b"})).expect(201)
    many = ",".join(f"a!=v{number}" for number in range(1001))
    refused = client.get(CLUSTERS, labelSelector=many).refused(400, "BadRequest")
    assert "more than 1000 different requirements" in refused["message"]
    assert len(client.get(CLUSTERS, labelSelector=",".join(["a=b"] * 5000)).expect(200)["items"]) == 1
