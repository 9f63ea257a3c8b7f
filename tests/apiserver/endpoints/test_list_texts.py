"""Lists that are written item by item: the same text as if written at once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from clusterregistry.apimachinery.codecs import json_codec, yaml_codec
from clusterregistry.apiserver.endpoints.list_encoding import pretty_list, yaml_list
from tests.apimachinery.codecs.memory import little_memory

ITEMS: list[Any] = [
    {"metadata": {"name": "a", "labels": {}}, "spec": {"list": [1, [2, [3]], {"b": []}], "text": "a\nb: c\n"}},
    {"k" * 1200: {"x": 1}, "": None, "empty": {}, "quoted: key": "- a", "z": "\u2028"},
    {},
]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("key", ["items", "rows"])
def test_the_text_is_that_of_the_whole_list(key: str, count: int) -> None:
    frame: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "metadata": {"a": [{"b": 1}]}, key: []}
    whole = {**frame, key: ITEMS[:count]}
    items = [orjson.dumps(item) for item in ITEMS[:count]]
    assert yaml_list(orjson.dumps(frame), iter(items)) == yaml_codec.encode(whole)
    assert pretty_list(orjson.dumps(frame), iter(items)) == json_codec.encode_pretty(whole)


@pytest.mark.parametrize("write", [yaml_list, pretty_list])
def test_only_one_item_is_read_at_a_time(write: Any) -> None:
    item = b'{"a":[' + b"{}," * 20_000 + b"{}]}"
    with little_memory(30_000_000):
        assert len(write(b'{"items":[]}', (item for _ in range(20)))) > 20 * len(item)
