from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta import times

LAYOUT = 'as "2006-01-02T15:04:05Z07:00"'


@pytest.mark.parametrize(
    ("given_time", "expected"),
    [
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05.999999Z", "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05+02:00", "2024-01-02T01:04:05Z"),
        ("2023-12-31T23:30:00-01:00", "2024-01-01T00:30:00Z"),
        ("0001-01-01T00:00:00Z", times.ZERO),
    ],
)
def test_times_are_rendered_in_utc_to_the_second(given_time: str, expected: str) -> None:
    assert times.normalise(given_time) == expected


@pytest.mark.parametrize(
    ("given_time", "message"),
    [
        ("yesterday", f'parsing time "yesterday" {LAYOUT}: cannot parse "yesterday" as "2006"'),
        ("", f'parsing time "" {LAYOUT}: cannot parse "" as "2006"'),
        ("2024-01-02", f'parsing time "2024-01-02" {LAYOUT}: cannot parse "" as "T"'),
        ("2024-01-02T03:04:05", f'parsing time "2024-01-02T03:04:05" {LAYOUT}: cannot parse "" as "Z07:00"'),
        ("2024-13-02T03:04:05Z", 'parsing time "2024-13-02T03:04:05Z": month out of range'),
        ("2024-02-30T03:04:05Z", 'parsing time "2024-02-30T03:04:05Z": day out of range'),
        ("2024-01-02T03:04:05Zx", 'parsing time "2024-01-02T03:04:05Zx": extra text: "x"'),
    ],
)
def test_what_is_no_time_is_refused_in_the_words_of_go(given_time: str, message: str) -> None:
    with pytest.raises(ValueError, match="parsing time") as refused:
        times.normalise(given_time)
    assert str(refused.value) == message


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_what_is_rendered_parses_to_the_same_second(time: datetime) -> None:
    assert times.parse(times.render(time)) == time.replace(microsecond=0)


@given(st.text(alphabet="0123456789-:TZ+.,", max_size=30) | st.text(max_size=30))
def test_any_text_is_a_time_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert times.normalise(text).endswith("Z")


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, "00:00:00"), (59.999, "00:00:59"), (60.0, "00:01:00")])
def test_the_present_time_is_that_of_the_clock_to_the_second(
    monkeypatch: pytest.MonkeyPatch, seconds: float, shown: str
) -> None:
    monkeypatch.setattr("time.time", lambda: seconds)
    assert times.present() == f"1970-01-01T{shown}Z"


MICRO_LAYOUT = 'as "2006-01-02T15:04:05.000000Z07:00"'


@pytest.mark.parametrize(
    ("given_time", "expected"),
    [
        ("2024-01-02T03:04:05.000007Z", "2024-01-02T03:04:05.000007Z"),
        ("2024-01-02T3:04:05,100000+02:00", "2024-01-02T01:04:05.100000Z"),
        ("0001-01-01T00:00:00.000000Z", times.ZERO_MICRO),
    ],
)
def test_micro_times_are_rendered_in_utc_with_six_decimals(given_time: str, expected: str) -> None:
    assert times.normalise_micro(given_time) == expected


@pytest.mark.parametrize(
    ("given_time", "message"),
    [
        ("noon", f'parsing time "noon" {MICRO_LAYOUT}: cannot parse "noon" as "2006"'),
        ("2024-01-02T03:04:05Z", f'parsing time "2024-01-02T03:04:05Z" {MICRO_LAYOUT}: cannot parse "Z" as ".000000"'),
        ("2024-01-02T30:04:05Z", 'parsing time "2024-01-02T30:04:05Z": hour out of range'),
        ("2024-02-30T03:04:05.000000Z", 'parsing time "2024-02-30T03:04:05.000000Z": day out of range'),
        (
            "2024-01-02T03:04:05.000000+25:00",
            'parsing time "2024-01-02T03:04:05.000000+25:00": time zone offset hour out of range',
        ),
    ],
)
def test_a_text_that_is_no_micro_time_is_refused_in_the_words_of_go(given_time: str, message: str) -> None:
    with pytest.raises(ValueError, match="parsing time") as refused:
        times.normalise_micro(given_time)
    assert str(refused.value) == message


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_rendered_micro_time_is_parsed_to_the_same(time: datetime) -> None:
    assert times.parse_micro(times.render_micro(time)) == time
