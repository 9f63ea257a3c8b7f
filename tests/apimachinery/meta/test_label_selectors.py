from __future__ import annotations

import string
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.label_selectors import LabelSelector, Requirement, parse_label_selector
from clusterregistry.apimachinery.meta.selectors import MAX_REQUIREMENTS, SelectorError

KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ("", None, True),
        ("", {"a": "b"}, True),
        ("env=prod", {"env": "prod"}, True),
        ("env==prod", {"env": "prod"}, True),
        ("env = prod", {"env": "dev"}, False),
        ("env=prod", None, False),
        ("env!=prod", {"env": "dev"}, True),
        ("env!=prod", {}, True),
        ("env!=prod", {"env": "prod"}, False),
        ("env in (prod,qa)", {"env": "qa"}, True),
        ("env in (prod,qa)", {}, False),
        ("env notin (prod, dev)", {"env": "qa"}, True),
        ("env notin (prod, dev)", None, True),
        ("env notin (prod, dev)", {"env": "dev"}, False),
        ("env", {"env": ""}, True),
        ("env", {}, False),
        ("!env", {}, True),
        ("!env", {"env": "x"}, False),
        ("env=", {"env": ""}, True),
        ("env=", {}, False),
        ("env in ()", {"env": ""}, True),
        ("env in (,a)", {"env": ""}, True),
        ("env in (a,)", {"env": ""}, True),
        ("size>5", {"size": "6"}, True),
        ("size>5", {"size": "5"}, False),
        ("size<5", {"size": "4"}, True),
        ("size<5", {"size": "many"}, False),
        ("size<5", {}, False),
        ("size>5", {"size": "9223372036854775808"}, False),
        ("in in (in,notin)", {"in": "notin"}, True),
        ("a=1,b!=2,c", {"a": "1", "c": ""}, True),
        ("a=1,b!=2,c", {"a": "1", "b": "2", "c": ""}, False),
        ("a=1,a=2", {"a": "1"}, False),
        ("example.com/role=x", {"example.com/role": "x"}, True),
    ],
)
def test_a_selector_matches_labels_as_kubernetes_says(
    selector: str, labels: dict[str, str] | None, *, expected: bool
) -> None:
    assert parse_label_selector(selector).matches(labels) is expected


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("env in", "unable to parse requirement: found '' expected: '('"),
        ("env=prod=x", "found '=', expected: ',' or 'end of string'"),
        ("=prod", "found '=', expected: !, identifier, or 'end of string'"),
        ("env=bad value", "found 'value', expected: ',' or 'end of string'"),
        ("env in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("env notin a)", "unable to parse requirement: found 'a' expected: '('"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!=a", "found '!=', expected: !, identifier, or 'end of string'"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a,", "found '', expected: identifier after ','"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in ((", "unable to parse requirement: found '(', expected: ',', ')' or identifier"),
        ("a in (b,(", "unable to parse requirement: found '(', expected: ',', or identifier"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("-env=prod", f'unable to parse requirement: <nil>: Invalid value: "-env": {KEY_RULE}'),
        ("env=_x", f'unable to parse requirement: values[0][env]: Invalid value: "_x": {VALUE_RULE}'),
        (
            "size>x",
            (
                "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, "
                "the value must be an integer"
            ),
        ),
        (
            "a in (-b,-c)",
            (
                f'unable to parse requirement: [values[0][a]: Invalid value: "-b": {VALUE_RULE}, '
                f'values[1][a]: Invalid value: "-c": {VALUE_RULE}]'
            ),
        ),
        (
            "//a",
            'unable to parse requirement: <nil>: Invalid value: "//a": '
            + KEY_RULE.replace("name part", "a valid label key")
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        ),
    ],
)
def test_a_bad_selector_is_refused_in_the_words_of_kubernetes(selector: str, message: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse_label_selector(selector)
    assert str(refused.value) == message


def test_selectors_that_say_the_same_are_equal_and_hash_alike() -> None:
    one, other = parse_label_selector("a==1, b in (y,x)"), parse_label_selector("b in (x,y),a=1")
    assert one == other
    assert len({one, other}) == 1
    assert one != parse_label_selector("a=1")
    assert one != "a=1,b in (x,y)"


def test_only_the_selector_without_requirements_is_empty() -> None:
    assert parse_label_selector(" ").empty
    assert not parse_label_selector("a").empty


def test_what_an_index_can_use() -> None:
    selector = parse_label_selector("a=1,b in (2),c in (3,4),d!=5,e,f>1,!g,h notin (6)")
    assert selector.narrowing == {"a": ("1",), "b": ("2",), "c": ("3", "4")}


def test_what_an_index_can_decide() -> None:
    decided = [parse_label_selector(text).is_one_narrowing for text in ("a=1", "a in (1,2)", "a=1,b=2", "a!=1", "a")]
    assert decided == [True, True, False, False, False]


letters = st.sampled_from(string.ascii_letters + string.digits)
words = st.builds(lambda a, b, c: a + b + c, letters, st.text(string.ascii_letters + "-_.0", max_size=8), letters)
keys = words | st.builds("example.com/{}".format, words)
requirements = st.one_of(
    st.builds(Requirement, keys, st.sampled_from(("exists", "!"))),
    st.builds(lambda key, op, value: Requirement(key, op, (value,)), keys, st.sampled_from(("=", "!=")), words),
    st.builds(lambda key, op, n: Requirement(key, op, (str(n),)), keys, st.sampled_from("<>"), st.integers(0, 10**9)),
    st.builds(
        lambda key, op, members: Requirement(key, op, tuple(sorted(members))),
        keys,
        st.sampled_from(("in", "notin")),
        st.sets(words | st.just(""), min_size=1, max_size=3),
    ),
)


@given(st.lists(requirements, max_size=4))
def test_what_a_selector_prints_parses_to_the_same_selector(parts: list[Requirement]) -> None:
    selector = LabelSelector(tuple(parts))
    assert parse_label_selector(str(selector)) == selector


@given(st.lists(requirements, max_size=4), st.dictionaries(keys, words, max_size=3))
def test_a_selector_matches_exactly_when_each_of_its_requirements_does(
    parts: list[Requirement], labels: dict[str, str]
) -> None:
    each = [LabelSelector((part,)).matches(labels) for part in parts]
    assert LabelSelector(tuple(parts)).matches(labels) is all(each)


few_keys = st.sampled_from("abcdefghijkl")
"""So few that long selectors have some of the labels, and several requirements on one."""

on_few_keys = st.one_of(
    st.builds(Requirement, few_keys, st.sampled_from(("exists", "!"))),
    st.builds(Requirement, few_keys, st.sampled_from(("=", "!=", "in", "notin", "<", ">")), st.tuples(st.just("1"))),
)


@given(
    st.lists(on_few_keys, min_size=9, max_size=30, unique=True), st.dictionaries(few_keys, st.sampled_from(("0", "1")))
)
def test_so_does_one_of_many_requirements(parts: list[Requirement], labels: dict[str, str]) -> None:
    each = [LabelSelector((part,)).matches(labels) for part in parts]
    assert LabelSelector(tuple(parts)).matches(labels) is all(each)
    holding = [part for part, does in zip(parts, each, strict=True) if does]
    assert LabelSelector(tuple(holding)).matches(labels) is True


class LookedUp(dict[str, str]):
    """Labels that count how often one of them is looked up."""

    count = 0

    def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
        self.count += 1
        return super().get(key, default)


def test_of_many_requirements_those_on_other_labels_cost_nothing() -> None:
    # A user who may write sets must not make each change of a label look at thousands of conditions.
    absent = tuple(Requirement(f"k{number}", "notin", ("x",)) for number in range(100))
    labels = LookedUp(k7="y", a="b")
    assert LabelSelector((*absent, Requirement("a", "=", ("b",)))).matches(labels)
    assert labels.count == 2


@given(st.text(alphabet=st.sampled_from("ab=!(),<> \tin not\0é-_/.'\""), max_size=30) | st.text(max_size=30))
def test_any_text_parses_or_is_refused_as_a_selector(text: str) -> None:
    with suppress(SelectorError):
        assert parse_label_selector(text).matches({"a": "b"}) in (True, False)


def test_equal_requirements_count_once() -> None:
    selector = parse_label_selector(",".join(["a=b", "a==b", "c"] * 5000))
    assert str(selector) == "a=b,c"


def test_too_many_different_requirements_are_refused() -> None:
    keys = [f"k{number}" for number in range(MAX_REQUIREMENTS + 1)]
    assert len(parse_label_selector(",".join(keys[:-1])).requirements) == MAX_REQUIREMENTS
    with pytest.raises(SelectorError, match=r"^the selector has more than 1000 different requirements$"):
        parse_label_selector(",".join(keys))


def test_a_text_that_no_url_has_room_for_is_not_read() -> None:
    with pytest.raises(SelectorError, match=r"^the selector has 3000001 characters, the limit is 65536$"):
        parse_label_selector("a," * 1_500_000 + "a")
