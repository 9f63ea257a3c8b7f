"""Every storage error becomes an API error, and none of them is a 500."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from clusterregistry.apiserver.registry.errors import api_error, watch_error
from clusterregistry.apiserver.storage import errors as storage_errors
from clusterregistry.apiserver.storage.errors import StorageError

EXAMPLES: dict[str, tuple[StorageError, int, str]] = {
    "StorageError": (StorageError("odd"), 503, "ServiceUnavailable"),
    "KeyExists": (storage_errors.KeyExists("/k"), 409, "Conflict"),
    "KeyNotFound": (storage_errors.KeyNotFound("/k"), 409, "Conflict"),
    "RevisionConflict": (storage_errors.RevisionConflict("/k", expected=1, actual=2), 409, "Conflict"),
    "GuardConflict": (storage_errors.GuardConflict("g", revision=2), 409, "Conflict"),
    "RevisionCompacted": (storage_errors.RevisionCompacted(1, compacted=2), 410, "Expired"),
    "RevisionInFuture": (storage_errors.RevisionInFuture(9, current=2), 504, "Timeout"),
    "ValueTooLarge": (storage_errors.ValueTooLarge("/k", size=9, remedy=""), 413, "RequestEntityTooLarge"),
    "CorruptObject": (
        storage_errors.CorruptObject("/k", revision=3, reason="it is not JSON"),
        409,
        "StorageReadError",
    ),
    "StorageUnavailable": (storage_errors.StorageUnavailable("full"), 503, "ServiceUnavailable"),
}


def classes() -> Iterator[str]:
    for name, value in inspect.getmembers(storage_errors, inspect.isclass):
        if issubclass(value, StorageError):
            yield name


def test_every_class_has_an_example_here() -> None:
    assert set(classes()) == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_class_has_its_api_error(name: str) -> None:
    error, code, reason = EXAMPLES[name]
    for converted in (api_error(error), watch_error(error)):
        assert (converted.code, converted.reason) == (code, reason)


def test_only_the_base_class_is_left_to_the_default() -> None:
    """A new class would be 503 without a decision: this test asks for one."""
    source = inspect.getsource(api_error)
    handled = {name for name in EXAMPLES if f"storage_errors.{name}(" in source}
    assert handled >= set(EXAMPLES) - {"StorageError", "StorageUnavailable"}


def test_only_errors_that_may_pass_ask_to_try_again() -> None:
    too_large = api_error(EXAMPLES["ValueTooLarge"][0])
    assert too_large.retry_after is None
    assert "the object takes 9 bytes" in str(too_large)
    assert api_error(EXAMPLES["StorageUnavailable"][0]).retry_after == 1
    assert api_error(EXAMPLES["RevisionInFuture"][0]).retry_after == 1


def test_a_compacted_revision_is_named_in_a_watch_alone() -> None:
    compacted = EXAMPLES["RevisionCompacted"][0]
    assert str(watch_error(compacted)) == "too old resource version: 1 (2)"
    assert str(api_error(compacted)) == "The resourceVersion for the provided list is too old."
