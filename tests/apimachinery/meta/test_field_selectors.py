from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.field_selectors import FieldSelector, ReadField, Term, parse_field_selector
from clusterregistry.apimachinery.meta.selectors import MAX_REQUIREMENTS, SelectorError


def named(name: str) -> ReadField:
    """The fields of a root-scoped object."""
    return lambda field: name if field == "metadata.name" else ""


@pytest.mark.parametrize(
    ("selector", "name", "expected"),
    [
        ("", "a", True),
        (",", "a", True),
        ("metadata.name=a", "a", True),
        ("metadata.name==a", "b", False),
        ("metadata.name!=a", "b", True),
        ("metadata.name!=a,metadata.name!=b", "b", False),
        ("metadata.name=a\\,b", "a,b", True),
        ("metadata.name=a\\=b", "a=b", True),
        ("metadata.name=a\\\\", "a\\", True),
        ("metadata.name=", "a", False),
    ],
)
def test_a_field_selector_matches_names(selector: str, name: str, *, expected: bool) -> None:
    assert parse_field_selector(selector).matches(named(name)) is expected


def test_a_root_scoped_object_has_an_empty_namespace() -> None:
    both = ("metadata.name", "metadata.namespace")
    assert parse_field_selector("metadata.namespace=", both).matches(named("a"))
    assert not parse_field_selector("metadata.namespace=default", both).matches(named("a"))


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("metadata.name>a", "invalid selector: 'metadata.name>a'; can't understand 'metadata.name>a'"),
        ("metadata.name=a,x", "invalid selector: 'metadata.name=a,x'; can't understand 'x'"),
        ("spec.clusterID=x", "field label not supported: spec.clusterID"),
        ("status.phase!=x", "field label not supported: status.phase"),
        ("metadata.namespace=x", "field label not supported: metadata.namespace"),
        ("=x", "field label not supported: "),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        ("metadata.name=\\x", "invalid field selector: invalid escape sequence: \\x"),
        ("metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_bad_field_selector_is_refused_in_the_words_of_kubernetes(selector: str, message: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse_field_selector(selector)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("selector", "name"),
    [("metadata.name=a", "a"), ("metadata.name!=b,metadata.name=a", "a"), ("metadata.name!=a", None), ("", None)],
)
def test_the_one_name_that_can_match_is_known(selector: str, name: str | None) -> None:
    assert parse_field_selector(selector).name == name


def test_only_the_selector_without_terms_is_empty() -> None:
    assert parse_field_selector("").empty
    assert not parse_field_selector("metadata.name!=a").empty


@given(st.lists(st.builds(Term, st.just("metadata.name"), st.booleans(), st.text(max_size=10)), max_size=3))
def test_what_a_field_selector_prints_parses_to_the_same_terms(terms: list[Term]) -> None:
    parsed = parse_field_selector(str(FieldSelector(tuple(terms))))
    assert set(parsed.terms) == set(terms)


@given(st.text(alphabet=st.sampled_from("metadata.name=!,\\ x"), max_size=40) | st.text(max_size=20))
def test_any_text_parses_or_is_refused_as_a_field_selector(text: str) -> None:
    with suppress(SelectorError):
        assert parse_field_selector(text).matches(named("a")) in (True, False)


def test_equal_terms_count_once_and_different_ones_up_to_a_limit() -> None:
    terms = [f"metadata.name!=a{number}" for number in range(MAX_REQUIREMENTS + 1)]
    assert len(parse_field_selector(",".join(terms[:-1] + terms[:-1])).terms) == MAX_REQUIREMENTS
    with pytest.raises(SelectorError, match="more than 1000 different requirements"):
        parse_field_selector(",".join(terms))
    with pytest.raises(SelectorError, match="the limit is 65536"):
        parse_field_selector("a=b," * 100_000 + "a=b", supported=None)
