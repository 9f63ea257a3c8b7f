"""Selectors that objects hold select as those in a query do."""

from __future__ import annotations

from typing import Any

import pytest

from clusterregistry.apimachinery.meta.label_selector_objects import label_selector, validate


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ({}, {}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "c"}, False),
        (expression("a", "In", "b", "c"), {"a": "c"}, True),
        (expression("a", "In", "b", "c"), {}, False),
        (expression("a", "NotIn", "b"), {}, True),
        (expression("a", "NotIn", "b"), {"a": "b"}, False),
        (expression("a", "Exists"), {"a": ""}, True),
        (expression("a", "DoesNotExist"), {"a": ""}, False),
        ({"matchLabels": {"a": "b"}, **expression("c", "Exists")}, {"a": "b"}, False),
    ],
)
def test_a_selector_matches_labels(selector: dict[str, Any], labels: dict[str, str], *, matches: bool) -> None:
    assert validate(selector, "selector") == []
    assert label_selector(selector).matches(labels) is matches


@pytest.mark.parametrize(
    ("selector", "fields"),
    [
        ({"matchLabels": {"a b": "c d"}}, ["s.matchLabels", "s.matchLabels"]),
        (expression("a", "Near", "b"), ["s.matchExpressions[0].operator"]),
        (expression("a", "In"), ["s.matchExpressions[0].values"]),
        (expression("a", "Exists", "b"), ["s.matchExpressions[0].values"]),
        (expression("", "In", "b c"), ["s.matchExpressions[0].key"] * 2 + ["s.matchExpressions[0].values[0]"]),
    ],
)
def test_a_selector_that_makes_no_sense_is_refused_where_it_is_wrong(
    selector: dict[str, Any], fields: list[str]
) -> None:
    assert [error.field for error in validate(selector, "s")] == fields
