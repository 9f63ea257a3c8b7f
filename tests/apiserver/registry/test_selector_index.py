"""Lists by labels find the same with the index as without it, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery.meta.field_selectors import EVERYTHING, parse_field_selector
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apiserver.registry import selector_index
from clusterregistry.apiserver.registry.list import EXACT, Listed, ListOptions, list_objects
from clusterregistry.apiserver.registry.selector_index import MOST_INDEXED, Label
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.interface import Page, Storage
from clusterregistry.apiserver.storage.object_bytes import labels_of, name_of, presented, to_stored
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.registry.cluster import cluster_resource
from tests.apiserver.storage.lagging import Lagging


@pytest.fixture(params=["sole writer", "several writers"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """On a storage with one writer, and on one whose events come late."""
    backend = await SQLiteStorage.open(tmp_path / "registry.db")
    resource = cluster_resource("off")
    seen: Storage = backend if request.param == "sole writer" else Lagging(backend)
    cacher = await Cacher.open(seen, Store(resource, backend, now=str).prefix, present=presented)
    yield Store(resource, cacher, now=str)
    await cacher.close()
    await backend.close()


async def put(store: Store, name: str, **labels: str) -> int:
    """Makes an object, or gives it other labels; returns the revision."""
    key, value = store.prefix + name, to_stored({"metadata": {"name": name, "uid": "u", "labels": labels}})
    present = await store.storage.get(key)
    if present is None:
        return await store.storage.create(key, value)
    return await store.storage.update(key, value, expected=present.revision)


async def remove(store: Store, name: str) -> int:
    present = await store.storage.get(store.prefix + name)
    assert present is not None
    return await store.storage.delete(present.key, expected=present.revision)


def options(selector: str, *, limit: int = 0, token: str = "", revision: int = 0) -> ListOptions:
    return ListOptions(
        labels=parse_label_selector(selector),
        fields=parse_field_selector(""),
        limit=limit,
        continue_token=token,
        resource_version=str(revision or ""),
        resource_version_match=EXACT if revision else "",
    )


async def selected(store: Store, selector: str, *, limit: int = 0, token: str = "", revision: int = 0) -> Listed:
    return await list_objects(store, options(selector, limit=limit, token=token, revision=revision))


def names(listed: Listed) -> list[str]:
    return [name_of(kv) for kv in listed.items]


async def test_the_index_finds_the_objects_that_may_match(store: Store) -> None:
    for name, env in (("c", "prod"), ("a", "prod"), ("b", "dev")):
        revision = await put(store, name, env=env)
    page = await store.index.page(parse_label_selector("env=prod"), EVERYTHING, prefix=store.prefix, revision=0)
    assert page is not None
    assert ([name_of(kv) for kv in page.items], page.revision) == (["a", "c"], revision)


@pytest.mark.parametrize("selector", ["", "env", "!env", "env!=prod", "env notin (prod)", "size>1"])
async def test_other_selectors_are_not_narrowed(store: Store, selector: str) -> None:
    assert await store.index.page(parse_label_selector(selector), EVERYTHING, prefix=store.prefix, revision=0) is None


async def test_the_past_is_not_in_the_index(store: Store) -> None:
    past = await put(store, "a", env="prod")
    await store.storage.wait_for(await put(store, "a", env="dev"))
    assert (
        await store.index.page(parse_label_selector("env=prod"), EVERYTHING, prefix=store.prefix, revision=past) is None
    )
    assert names(await selected(store, "env=prod", revision=past)) == ["a"]
    assert names(await selected(store, "env=prod")) == []


async def test_it_is_kept_in_step(store: Store) -> None:
    await put(store, "a", env="prod")
    await put(store, "b", env="dev")
    assert names(await selected(store, "env in (prod,dev)")) == ["a", "b"]
    await put(store, "c", env="prod")
    await put(store, "b", env="prod")
    await put(store, "a")
    assert names(await selected(store, "env=prod")) == ["b", "c"]
    await remove(store, "c")
    assert names(await selected(store, "env=prod")) == ["b"]
    assert names(await selected(store, "env=dev")) == []


async def test_objects_are_those_of_their_last_change(store: Store) -> None:
    await put(store, "a", env="prod")
    await selected(store, "env=prod")
    revision = await put(store, "a", env="prod", tier="1")
    (found,) = (await selected(store, "env=prod")).items
    assert found.revision == revision


async def test_random_histories_look_the_same_through_the_index(store: Store) -> None:
    rng = random.Random(7)
    selectors = ["env=a", "env in (a,b)", "env=b,tier=a", "tier in (b,c),env!=a", "env=a,tier notin (a)", "zone=a"]
    for _ in range(150):
        name = f"c{rng.randrange(12)}"
        if rng.random() < 0.3 and await store.storage.get(store.prefix + name):
            await remove(store, name)
        else:
            await put(store, name, **{label: rng.choice("abc") for label in rng.sample(["env", "tier", "zone"], 2)})
        selector = rng.choice(selectors)
        everything = (await selected(store, "")).items
        matches = parse_label_selector(selector).matches
        assert names(await selected(store, selector)) == [name_of(kv) for kv in everything if matches(labels_of(kv))]


class Held:
    """Lists that return late with the state of when they were called."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self._list, self.asked, self.go_on = store.storage.list, asyncio.Event(), asyncio.Event()
        monkeypatch.setattr(store.storage, "list", self._late)

    async def _late(self, *arguments: Any, **keywords: Any) -> Page:
        page = await self._list(*arguments, **keywords)
        self.asked.set()
        await self.go_on.wait()
        return page


async def test_what_changes_while_the_index_is_made_is_in_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abcd":
        await put(store, name, env="prod")
    held = Held(store, monkeypatch)
    listing = asyncio.create_task(selected(store, "env=prod"))
    await held.asked.wait()
    await put(store, "a", env="dev")
    revision = await put(store, "b", env="prod")
    await put(store, "e", env="prod")
    await remove(store, "d")
    held.go_on.set()
    found = await listing
    assert names(found) == names(await selected(store, "env=prod")) == ["b", "c", "e"]
    assert found.items[0].revision == revision
    assert names(await selected(store, "env=dev")) == ["a"]


async def test_a_list_while_the_index_is_made_does_without(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(store, "a", env="prod")
    held = Held(store, monkeypatch)
    first = asyncio.create_task(selected(store, "env=prod"))
    await held.asked.wait()
    assert await store.index.page(parse_label_selector("env=prod"), EVERYTHING, prefix=store.prefix, revision=0) is None
    held.go_on.set()
    assert names(await first) == ["a"]


async def test_an_index_that_is_cancelled_is_made_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(store, "a", env="prod")
    held = Held(store, monkeypatch)
    leaving = asyncio.create_task(selected(store, "env=prod"))
    await held.asked.wait()
    leaving.cancel()
    await asyncio.wait([leaving])
    assert not store.index.indexed
    held.go_on.set()
    page = await store.index.page(parse_label_selector("env=prod"), EVERYTHING, prefix=store.prefix, revision=0)
    assert page is not None
    assert [name_of(kv) for kv in page.items] == ["a"]


async def test_the_labels_in_the_index_are_bounded(store: Store) -> None:
    many = {f"label-{number}": "x" for number in range(3 * MOST_INDEXED)}
    await put(store, "a", **many)
    for label in many:
        assert names(await selected(store, f"{label}=x")) == ["a"]
    assert names(await selected(store, ",".join(f"{label}=x" for label in many))) == ["a"]
    assert len(store.index.indexed) == MOST_INDEXED


async def test_the_most_recently_used_label_stays(store: Store) -> None:
    await put(store, "a", env="x")
    for number in range(2 * MOST_INDEXED):
        await selected(store, "env=x")
        await selected(store, f"label-{number}=x")
    assert Label("env") in store.index.indexed


async def test_pages_by_label_continue_after_the_last_object(store: Store) -> None:
    for name, env in zip("abcde", ["prod", "dev", "prod", "prod", "dev"], strict=True):
        await put(store, name, env=env)
    first = await selected(store, "env=prod", limit=2)
    assert names(first) == ["a", "c"]
    second = await selected(store, "env=prod", limit=2, token=first.continue_token)
    assert (names(second), second.continue_token) == (["d"], "")


@pytest.mark.parametrize(("last", "goes_on"), [("dev", True), ("prod", False)])
async def test_a_page_goes_on_while_there_are_objects_of_any_kind(store: Store, last: str, *, goes_on: bool) -> None:
    for name, env in zip("abc", ["prod", "prod" if last == "dev" else "dev", last], strict=True):
        await put(store, name, env=env)
    page = await selected(store, "env=prod", limit=2)
    assert len(page.items) == 2
    assert bool(page.continue_token) is goes_on


async def test_a_page_after_a_change_is_of_the_same_snapshot(store: Store) -> None:
    for name in "abc":
        await put(store, name, env="prod")
    first = await selected(store, "env=prod", limit=1)
    await put(store, "b", env="dev")
    await put(store, "d", env="prod")
    rest = await selected(store, "env=prod", token=first.continue_token)
    assert (names(rest), rest.revision) == (["b", "c"], first.revision)


async def test_an_index_that_missed_something_is_made_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the index would list a deleted object for ever."""
    for name in ("a", "b"):
        await put(store, name, env="prod")
    assert names(await selected(store, "env=prod")) == ["a", "b"]

    def fails(_: object) -> dict[str, str]:
        raise ValueError("labels that cannot be read")

    with monkeypatch.context() as patched:
        patched.setattr(selector_index, "read_labels", fails)
        revision = await remove(store, "a")
        await store.storage.wait_for(revision)
    assert names(await selected(store, "env=prod")) == ["b"]
    await put(store, "c", env="prod")
    assert names(await selected(store, "env=prod")) == ["b", "c"]
