"""Objects in namespaces: their keys, lists of one namespace and of all, fields to select by, and watches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apimachinery.meta.selectors import SelectorError
from clusterregistry.apimachinery.schema.schemas import Object as ObjectSchema
from clusterregistry.apimachinery.schema.schemas import String
from clusterregistry.apiserver.authz.view import View
from clusterregistry.apiserver.registry.broadcaster import ADDED, DELETED, Change, seen_through
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.list import Listed, ListOptions, list_objects
from clusterregistry.apiserver.registry.object_filter import EVERYTHING, Everything, ObjectFilter
from clusterregistry.apiserver.registry.resource import Resource, Version
from clusterregistry.apiserver.registry.selectable_fields import SelectableFields
from clusterregistry.apiserver.registry.store import Store, UpdateRequest
from clusterregistry.apiserver.registry.structural_strategy import SpecStrategy
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.object_bytes import decoded, presented
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage

SCHEMA = ObjectSchema(fields={"spec": ObjectSchema(fields={"colour": String()})})


def colour(obj: dict[str, Any]) -> str:
    return str(obj.get("spec", {}).get("colour", ""))


RESOURCE = Resource(
    group="example.com",
    kind="Thing",
    plural="things",
    singular="thing",
    namespaced=True,
    versions=(
        Version(name="v1", schema=SCHEMA),
        Version(name="v2", schema=SCHEMA, field_labels={"hue": "spec.colour"}),
    ),
    storage_version="v1",
    strategy=SpecStrategy(SCHEMA),
    selectable_fields={"spec.colour": colour},
)
FIELDS = SelectableFields.of(RESOURCE, RESOURCE.versions[0])


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    backend = await SQLiteStorage.open(tmp_path / "registry.db")
    cacher = await Cacher.open(backend, Store(RESOURCE, backend, now=str).prefix, present=presented)
    yield Store(RESOURCE, cacher, now=lambda: "2020-01-01T00:00:00Z")
    await cacher.close()
    await backend.close()


def ignore(_warning: str) -> None:
    """Takes a warning."""


async def create(store: Store, key: str, colour: str = "red", **labels: str) -> KeyValue:
    namespace, name = key.split("/")
    metadata = {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})}
    obj = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": {"colour": colour}}
    return await store.create(obj, dry_run=False, warn=ignore)


def options(  # noqa: PLR0913 - all by keyword
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    limit: int = 0,
    token: str = "",
    visible: ObjectFilter = EVERYTHING,
) -> ListOptions:
    return ListOptions(
        labels=parse_label_selector(labels),
        fields=FIELDS.parse(fields),
        reader=FIELDS.reader,
        namespace=namespace,
        limit=limit,
        continue_token=token,
        visible=visible,
    )


def keys(store: Store, listed: Listed) -> list[str]:
    return [store.key_in(kv) for kv in listed.items]


async def test_objects_of_one_name_live_in_several_namespaces(store: Store) -> None:
    for namespace in ("one", "two"):
        await create(store, f"{namespace}/a", colour=namespace)
    assert decoded(await store.get("two/a"))["spec"] == {"colour": "two"}
    assert (await store.delete("one/a", DeleteOptions())).removed
    with pytest.raises(APIError, match=r'things\.example\.com "a" not found'):
        await store.get("one/a")
    assert (await store.get("two/a")).key == "/example.com/things/two/a"


async def test_a_name_that_is_taken_in_another_namespace_is_free(store: Store) -> None:
    await create(store, "one/a")
    await create(store, "two/a")
    with pytest.raises(APIError, match=r'things\.example\.com "a" already exists'):
        await create(store, "two/a")


async def test_an_update_keeps_the_namespace(store: Store) -> None:
    await create(store, "one/a")

    def change(old: dict[str, Any] | None) -> dict[str, Any]:
        assert old is not None
        return {**old, "metadata": {"name": "a"}, "spec": {"colour": "blue"}}

    written = await store.update("one/a", UpdateRequest(change=change, strategy=RESOURCE.strategy, warn=ignore))
    assert decoded(written.kv)["metadata"]["namespace"] == "one"
    assert decoded(await store.get("one/a"))["spec"] == {"colour": "blue"}


async def test_a_list_has_one_namespace_or_all_in_the_order_of_their_keys(store: Store) -> None:
    for key in ("team/a", "team-2/a", "team-2/b", "tea/z"):
        await create(store, key)
    assert keys(store, await list_objects(store, options())) == ["tea/z", "team-2/a", "team-2/b", "team/a"]
    assert keys(store, await list_objects(store, options(namespace="team"))) == ["team/a"]
    assert keys(store, await list_objects(store, options(namespace="te"))) == []


@pytest.mark.parametrize("namespace", ["", "two"])
async def test_pages_continue_within_their_namespaces(store: Store, namespace: str) -> None:
    wanted = sorted(f"{each}/{name}" for each in ("one", "two", "two-b") for name in "abc")
    for key in wanted:
        await create(store, key)
    found: list[str] = []
    token = ""
    while True:
        page = await list_objects(store, options(namespace=namespace, limit=2, token=token))
        found += keys(store, page)
        token = page.continue_token
        if not token:
            break
    assert found == [key for key in wanted if not namespace or key.startswith("two/")]


async def test_the_token_of_all_namespaces_is_none_of_a_single_one(store: Store) -> None:
    for key in ("one/a", "one/b", "two/a"):
        await create(store, key)
    page = await list_objects(store, options(limit=1))
    with pytest.raises(APIError, match="not a name"):
        await list_objects(store, options(namespace="two", token=page.continue_token))


@pytest.mark.parametrize(
    ("fields", "labels", "namespace", "expected"),
    [
        ("metadata.name=a", "", "", ["one/a", "two/a"]),
        ("metadata.name=a", "", "two", ["two/a"]),
        ("metadata.namespace=two", "", "", ["two/a", "two/b"]),
        ("metadata.namespace!=two", "", "", ["one/a"]),
        ("spec.colour=red", "", "", ["one/a", "two/b"]),
        ("spec.colour=red", "", "two", ["two/b"]),
        ("spec.colour!=red", "", "", ["two/a"]),
        ("spec.colour=red", "env=prod", "", ["two/b"]),
        ("spec.colour=green", "", "", []),
    ],
)
async def test_fields_and_labels_select(
    store: Store, *, fields: str, labels: str, namespace: str, expected: list[str]
) -> None:
    await create(store, "one/a", colour="red")
    await create(store, "two/a", colour="blue", env="prod")
    await create(store, "two/b", colour="red", env="prod")
    for limit in (0, 5):
        found = await list_objects(store, options(fields=fields, labels=labels, namespace=namespace, limit=limit))
        assert keys(store, found) == expected


async def test_an_indexed_field_follows_changes(store: Store) -> None:
    await create(store, "one/a", colour="red")
    assert keys(store, await list_objects(store, options(fields="spec.colour=red"))) == ["one/a"]
    assert "spec.colour" in store.index.indexed

    def change(old: dict[str, Any] | None) -> dict[str, Any]:
        return {**(old or {}), "spec": {"colour": "blue"}}

    await store.update("one/a", UpdateRequest(change=change, strategy=RESOURCE.strategy, warn=ignore))
    assert keys(store, await list_objects(store, options(fields="spec.colour=red"))) == []
    assert keys(store, await list_objects(store, options(fields="spec.colour=blue"))) == ["one/a"]


def test_a_version_has_its_own_names_of_fields() -> None:
    other = SelectableFields.of(RESOURCE, RESOURCE.versions[1])
    assert other.parse("hue=red") == FIELDS.parse("spec.colour=red")
    with pytest.raises(SelectorError, match=r"field label not supported: spec\.colour"):
        other.parse("spec.colour=red")
    with pytest.raises(SelectorError, match="field label not supported: hue"):
        FIELDS.parse("hue=red")


class Some(Everything):
    """A filter with these names."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def view(self) -> View | None:
        return View(self._names)


async def test_a_filtered_list_has_single_objects_and_whole_namespaces(store: Store) -> None:
    for key in ("one/a", "one/b", "two/a", "two/b", "two-b/a"):
        await create(store, key)
    visible = Some("one/b", "two/")
    assert keys(store, await list_objects(store, options(visible=visible))) == ["one/b", "two/a", "two/b"]
    assert keys(store, await list_objects(store, options(namespace="one", visible=visible))) == ["one/b"]


@given(st.sampled_from(["a", "n/a", "n/b", "nn/a"]), st.frozensets(st.sampled_from(["a", "n/a", "n/", "nn/", "/"])))
def test_an_object_is_visible_by_its_key_or_its_namespace_or_in_any_by_its_name(
    key: str, names: frozenset[str]
) -> None:
    namespace, slash, name = key.rpartition("/")
    assert View(names).shows(key, None) == (key in names or (bool(slash) and bool({f"{namespace}/", name} & names)))


async def test_a_watch_of_a_namespace_sees_its_objects_alone(store: Store) -> None:
    mine, other = await create(store, "one/a"), await create(store, "one-b/a")
    watched = options(namespace="one")
    assert seen_through(watched, Event(mine.key, 1, mine, None)) == Change(ADDED, mine)
    assert seen_through(watched, Event(other.key, 2, other, None)) is None
    gone = seen_through(watched, Event(mine.key, 3, None, mine))
    assert gone is not None
    assert gone.type == DELETED


async def test_a_namespace_that_takes_no_objects_is_asked_before_anything_else(store: Store) -> None:
    async def refuse(obj: dict[str, Any], _group: str) -> None:
        raise APIError({"code": 404, "reason": "NotFound", "message": f"no namespace {obj['metadata']['namespace']}"})

    store.check_namespace = refuse
    with pytest.raises(APIError, match="no namespace nowhere"):
        await create(store, "nowhere/Bad_Name")
