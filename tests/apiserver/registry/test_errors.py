"""Every storage error has an interpretation, and none of them is a 500."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from clusterregistry.apiserver.registry.errors import api_error
from clusterregistry.apiserver.storage import errors as storage_errors
from clusterregistry.apiserver.storage.errors import StorageError

EXAMPLES: dict[str, tuple[StorageError, int, str]] = {
    "StorageError": (StorageError("odd"), 503, "ServiceUnavailable"),
    "KeyExists": (storage_errors.KeyExists("/k"), 409, "Conflict"),
    "KeyNotFound": (storage_errors.KeyNotFound("/k"), 409, "Conflict"),
    "RevisionConflict": (storage_errors.RevisionConflict("/k", expected=1, actual=2), 409, "Conflict"),
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
def test_every_class_has_an_interpretation(name: str) -> None:
    error, code, reason = EXAMPLES[name]
    interpreted = api_error(error)
    assert (interpreted.code, interpreted.reason) == (code, reason)


def test_only_the_base_class_is_left_to_the_default() -> None:
    """A new class that nobody thought of would be 503: this makes somebody think of it."""
    source = inspect.getsource(api_error)
    handled = {name for name in EXAMPLES if f"storage_errors.{name}(" in source}
    assert handled >= set(EXAMPLES) - {"StorageError", "StorageUnavailable"}


def test_a_client_is_told_not_to_try_again_what_never_fits() -> None:
    refused = api_error(EXAMPLES["ValueTooLarge"][0])
    assert refused.retry_after is None
    assert "the object takes 9 bytes" in str(refused)


def test_a_client_is_told_to_try_again() -> None:
    assert api_error(EXAMPLES["StorageUnavailable"][0]).retry_after == 1
    assert api_error(EXAMPLES["RevisionInFuture"][0]).retry_after == 1
