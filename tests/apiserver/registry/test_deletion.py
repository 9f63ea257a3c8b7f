from __future__ import annotations

import pytest

from clusterregistry.apiserver.registry.deletion import DeleteOptions, finalizers_after, marked

HOLD = "example.com/hold"
F, O = "foregroundDeletion", "orphan"  # noqa: E741


def policy(name: str | None = None, *, orphan: bool | None = None) -> DeleteOptions:
    return DeleteOptions(propagation_policy=name, orphan_dependents=orphan)


@pytest.mark.parametrize(
    ("before", "options", "after"),
    [
        ([], policy(), []),
        ([HOLD], policy(), [HOLD]),
        ([], policy("Background"), []),
        ([], policy("Foreground"), [F]),
        ([], policy("Orphan"), [O]),
        ([HOLD], policy("Foreground"), [HOLD, F]),
        ([F, HOLD], policy(), [F, HOLD]),
        ([O], policy(), [O]),
        ([F], policy("Orphan"), [O]),
        ([O], policy("Foreground"), [F]),
        ([F, HOLD], policy("Background"), [HOLD]),
        ([O], policy("Background"), []),
        ([], policy(orphan=True), [O]),
        ([F], policy(orphan=True), [O]),
        ([O, HOLD], policy(orphan=False), [HOLD]),
        ([F], policy(orphan=False), []),
        ([HOLD, F], policy("Foreground"), [HOLD, F]),
        ([F, HOLD], policy("Foreground"), [F, HOLD]),
    ],
)
def test_the_policy_adds_and_removes_only_its_own(before: list[str], options: DeleteOptions, after: list[str]) -> None:
    assert finalizers_after(before, options) == after


def test_marking_sets_everything_once() -> None:
    obj = {"metadata": {"name": "a", "generation": 3}, "spec": {"x": 1}}
    first = marked(obj, finalizers=[HOLD], now="2030-01-01T00:00:00Z")
    assert first == {
        "metadata": {
            "name": "a",
            "generation": 4,
            "finalizers": [HOLD],
            "deletionTimestamp": "2030-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 0,
        },
        "spec": {"x": 1},
    }
    assert marked(first, finalizers=[HOLD], now="2031-01-01T00:00:00Z") == first
    assert obj["metadata"] == {"name": "a", "generation": 3}
