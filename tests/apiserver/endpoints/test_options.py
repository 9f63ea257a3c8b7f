from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.endpoints.options import (
    delete_options,
    delete_options_from_query,
    list_options,
    write_options,
)
from clusterregistry.apiserver.http.request import Query
from clusterregistry.apiserver.registry.deletion import DeleteOptions, Preconditions


@pytest.mark.parametrize("text", ["x", "1.5", "1e3", "", "1_000", "9223372036854775808", "9" * 5000])
def test_what_is_no_number_is_a_bad_request_in_gos_words(text: str) -> None:
    for name in ("limit", "timeoutSeconds"):
        with pytest.raises(APIError) as caught:
            list_options(Query(f"{name}={text}".encode()), watch=False)
        assert caught.value.code == 400
        assert caught.value.status["message"].startswith("strconv.ParseInt: parsing ")


def status_of(read: Callable[[], object]) -> int:
    """200, or the status of the refusal."""
    try:
        read()
    except APIError as error:
        return error.code
    return 200


@given(st.binary(max_size=60))
def test_no_query_is_more_than_a_client_error(query: bytes) -> None:
    for read in (
        lambda: list_options(Query(query), watch=False),
        lambda: list_options(Query(query), watch=True),
        lambda: write_options(Query(query), "CreateOptions"),
        lambda: delete_options_from_query(Query(query)),
    ):
        assert status_of(read) in (200, 400, 422)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ["gracePeriodSeconds", "propagationPolicy", "orphanDependents", "dryRun", "preconditions", "other"]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_no_delete_options_are_more_than_a_client_error(values: dict[str, object]) -> None:
    assert status_of(lambda: delete_options(values)) in (200, 400, 422)


def test_delete_options() -> None:
    given_options = {
        "dryRun": ["All"],
        "propagationPolicy": "Orphan",
        "gracePeriodSeconds": 5,
        "preconditions": {"uid": "u", "resourceVersion": "7"},
    }
    assert delete_options(given_options) == DeleteOptions(
        dry_run=True,
        propagation_policy="Orphan",
        preconditions=Preconditions(uid="u", resource_version="7"),
    )


def test_of_repeated_parameters_the_first_counts() -> None:
    query = Query(b"limit=1&limit=2&dryRun=a&dryRun=b&empty=")
    assert query.first("limit") == "1"
    assert query.all("dryRun") == ["a", "b"]
    assert "empty" in query
    assert "other" not in query
