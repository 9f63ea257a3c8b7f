"""Lists: continue tokens, and selectors that take long."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apimachinery.meta.field_selectors import parse_field_selector
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apiserver.authz.view import View
from clusterregistry.apiserver.registry import list as list_module
from clusterregistry.apiserver.registry.list import ListOptions, decode_token, encode_token, selected
from clusterregistry.apiserver.registry.object_filter import Everything
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import presented, to_stored
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.registry.cluster import cluster_resource
from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import CLUSTERS, cluster


@given(st.integers(min_value=1, max_value=2**63 - 1), st.from_regex(r"[a-z0-9.-]{1,50}", fullmatch=True))
def test_what_is_encoded_can_be_decoded(revision: int, name: str) -> None:
    assert decode_token(encode_token(revision, name)) == (revision, name)


def test_a_token_has_the_form_of_kube_apiservers() -> None:
    token = encode_token(7, "a")
    padded = token + "=" * (-len(token) % 4)
    assert json.loads(base64.urlsafe_b64decode(padded)) == {"v": "meta.k8s.io/v1", "rv": 7, "start": "a\u0000"}


def test_a_token_for_the_inconsistent_rest() -> None:
    assert decode_token(encode_token(-1, "a")) == (-1, "a")


def decoded(text: str) -> tuple[int, str] | int:
    """The decoded token, or the status of the refusal."""
    try:
        return decode_token(text)
    except APIError as error:
        return error.code


@given(st.text(max_size=60))
def test_no_text_is_more_than_a_bad_request(text: str) -> None:
    assert decoded(text) == 400 or encode_token(*decode_token(text))


@given(
    st.dictionaries(
        st.sampled_from(["v", "rv", "start", "x"]),
        st.none() | st.integers() | st.booleans() | st.sampled_from(["meta.k8s.io/v1", "a\u0000", "/a", "", "a/b"]),
    )
)
def test_no_made_up_token_leads_out_of_the_collection(fields: dict[str, object]) -> None:
    token = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()
    found = decoded(token)
    if found != 400:
        assert isinstance(found, tuple)
        revision, after = found
        assert revision > 0 or revision == -1
        assert after
        assert "/" not in after


def test_padding_does_not_matter() -> None:
    for name, padding in itertools.product(("a", "ab", "abc"), ("", "=", "==")):
        assert decode_token(encode_token(3, name) + padding) == (3, name)


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


class Changing(Everything):
    """Shows the objects that a test says, one view after the other."""

    def __init__(self, *views: View | None) -> None:
        self.views = list(views)

    def view(self) -> View | None:
        return self.views.pop(0) if len(self.views) > 1 else self.views[0]


def some(*names: str) -> View:
    return View(frozenset(names))


@pytest.mark.parametrize(
    ("views", "shown"),
    [
        ([some("a1")], ["a1"]),
        ([some("a1"), some("a2")], ["a2"]),
        ([some("a1"), None], ["a0", "a1", "a2"]),
        ([some("a0"), some("a1"), some("a0"), some("a1"), some("a0"), some("a1"), some("a2")], ["a2"]),
        ([None, some("a1"), None], ["a0", "a1", "a2"]),
    ],
)
async def test_objects_are_compared_with_rights_that_hold_all_the_while(
    views: list[View | None], shown: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(list_module, "_WITHOUT_A_PAUSE", -1.0)
    backend = await SQLiteStorage.open(tmp_path / "registry.db")
    resource = cluster_resource("off")
    store = Store(resource, backend, now=str)
    items = [KeyValue(f"{store.prefix}a{number}", b"", 1) for number in range(3)]
    found = await list_module._shown(store, Changing(*views), items)
    assert [store.key_in(kv) for kv in found] == shown
    await backend.close()
