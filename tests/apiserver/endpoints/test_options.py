"""Options of verbs, and the field manager of a write."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.endpoints.options import (
    WriteOptions,
    delete_options,
    delete_options_from_query,
    list_options,
    manager_name,
    write_options,
)
from clusterregistry.apiserver.http.request import Query
from clusterregistry.apiserver.registry.deletion import DeleteOptions, Preconditions
from tests.apiserver.server.requests import BareRequest


@pytest.mark.parametrize("text", ["x", "1.5", "1e3", "", "1_000", "9223372036854775808", "9" * 5000])
def test_an_invalid_number_is_a_bad_request_in_gos_words(text: str) -> None:
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


def manager(user_agent: bytes | None, *, asked: str = "") -> str:
    request = BareRequest()
    if user_agent is not None:
        request.headers["user-agent"] = user_agent.decode("latin-1")
    return manager_name(request, WriteOptions(field_manager=asked))


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (b"kubectl/v1.36.4 (linux/amd64) kubernetes/abc", "kubectl"),
        (b"curl/8.5.0", "curl"),
        (b"python-requests", "python-requests"),
        (b"Mozilla/5.0 (X11; Linux x86_64)", "Mozilla"),
        (b"my program", "my program"),
        (b" spaces /1", " spaces "),
        (b"/1.0", ""),
        (b"//", ""),
        (b"", ""),
        (None, ""),
    ],
)
def test_the_manager_is_the_text_before_the_first_slash(user_agent: bytes | None, name: str) -> None:
    assert manager(user_agent) == name


def test_the_query_comes_before_the_user_agent() -> None:
    assert manager(b"kubectl/v1", asked="me/too") == "me/too"
    assert manager(None, asked="me") == "me"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (b"a\tb\x7f\x01c/1", "abc"),
        ("a\N{NO-BREAK SPACE}b\N{ZERO WIDTH SPACE}c/1".encode(), "abc"),
        ("a\N{LINE SEPARATOR}\N{ZERO WIDTH NO-BREAK SPACE}b".encode(), "ab"),
    ],
)
def test_unprintable_characters_are_left_out(user_agent: bytes, name: str) -> None:
    assert manager(user_agent) == name


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("Käse/1".encode(), "Käse"),
        ("日本/1".encode(), "日本"),
        ("😀".encode(), "😀"),
        ("Käse/1".encode("latin-1"), "K\N{REPLACEMENT CHARACTER}se"),
        (b"a\xff\xfe/1", "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_a_user_agent_is_read_as_utf_8(user_agent: bytes, name: str) -> None:
    assert manager(user_agent) == name


@pytest.mark.parametrize("broken", [b"\xe2\x82", b"\xf0\x9f\x98", b"\xf0\x9f", b"\xed\xa0\x80", b"\xc3\xc3"])
def test_each_invalid_byte_is_one_replacement_character(broken: bytes) -> None:
    assert manager(b"a" + broken + b"b/1") == "a" + "\N{REPLACEMENT CHARACTER}" * len(broken) + "b"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (b"x" * 128, "x" * 128),
        (b"x" * 129, "x" * 128),
        (b"x" * 5000 + b"/1", "x" * 128),
        (("x" * 127 + "é").encode(), "x" * 127),
        (("x" * 126 + "é").encode(), "x" * 126 + "é"),
        (("x" * 127 + "éy").encode(), "x" * 127),
        (("日" * 50).encode(), "日" * 42),
        (b"\x01" * 200 + b"x" * 200, "x" * 128),
    ],
)
def test_a_name_has_at_most_128_bytes_and_whole_characters(user_agent: bytes, name: str) -> None:
    assert manager(user_agent) == name


@given(st.binary(max_size=300))
def test_any_user_agent_makes_a_valid_manager(user_agent: bytes) -> None:
    name = manager(user_agent)
    assert len(name.encode()) <= 128
    assert name.isprintable()
    assert "/" not in name
