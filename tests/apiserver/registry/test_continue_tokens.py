from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.registry.list import decode_token, encode_token


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
    """What a token says, or the status of the refusal."""
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


@pytest.mark.parametrize("padding", ["", "=", "=="])
def test_padding_does_not_matter(padding: str) -> None:
    for name in ("a", "ab", "abc"):
        assert decode_token(encode_token(3, name) + padding) == (3, name)
