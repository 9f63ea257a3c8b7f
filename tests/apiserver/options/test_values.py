from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.cli.options.value_types import BOOLEAN, DURATION, INTEGER, WORDS, choice, shown_duration
from tests.product import OPTIONS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("100ms", 0.1),
        ("90", 90),
        ("0", 0),
        ("0s", 0),
        ("0.5", 0.5),
        ("1h0m10s", 3610),
    ],
)
def test_durations_are_written_as_in_go_or_in_seconds(text: str, seconds: float) -> None:
    assert DURATION.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "s", "-5s", "5 s", "5d", "1h 30m", "5s,", "1e3", "inf", "nan", "٣s", "9" * 400, "9" * 400 + "h"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|longer than"):
        DURATION.parse(text)


@given(st.integers(min_value=0, max_value=10**8))
def test_a_shown_duration_reads_back_as_itself(seconds: int) -> None:
    assert DURATION.parse(shown_duration(seconds)) == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("T", True), ("1", True), ("False", False), ("0", False)])
def test_booleans_have_the_spellings_of_go(text: str, *, value: bool) -> None:
    assert BOOLEAN.parse(text) is value


@pytest.mark.parametrize("text", ["", "yes", "on", "2", "tRUE", " true"])
def test_other_words_are_no_booleans(text: str) -> None:
    with pytest.raises(ValueError, match="true or false"):
        BOOLEAN.parse(text)


@pytest.mark.parametrize("text", ["", "a", "1.5", "1_000", "0x10", " 1", "1" * 30, "٣"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        INTEGER.parse(text)


def test_words_are_separated_by_commas() -> None:
    assert WORDS.parse("RBAC, AlwaysDeny,") == ("RBAC", "AlwaysDeny")


def test_a_choice_names_what_may_be_chosen_and_what_comes_later() -> None:
    kind = choice("sqlite", later=("etcd3",))
    with pytest.raises(ValueError, match='"mysql" is not one of sqlite'):
        kind.parse("mysql")
    with pytest.raises(ValueError, match="etcd3 is not supported yet"):
        kind.parse("etcd3")


@given(st.sampled_from(sorted(OPTIONS.by_flag)), st.text())
def test_no_text_raises_anything_but_a_value_error(flag: str, text: str) -> None:
    try:
        OPTIONS.by_flag[flag].details.kind.parse(text)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - either outcome is fine, another exception is not


@pytest.mark.parametrize("flag", sorted(OPTIONS.by_flag))
def test_the_default_of_every_option_can_be_shown(flag: str) -> None:
    option = OPTIONS.by_flag[flag]
    assert option.default_text or option.details.default_shown
