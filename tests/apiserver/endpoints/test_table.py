from __future__ import annotations

import pytest

from clusterregistry.apimachinery.meta.duration import human_duration
from clusterregistry.apiserver.endpoints.table import NONE, Ages, rounded, seconds_of

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (1, "1s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + MINUTE, "3h1m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR, "8y"),
        (100 * YEAR, "100y"),
    ],
)
def test_the_larger_the_coarser(seconds: int, shown: str) -> None:
    assert human_duration(seconds) == shown


def test_durations_that_are_rounded_to_the_same_are_worded_the_same() -> None:
    times = [-3, *range(10 * DAY), *range(10 * DAY, 10 * YEAR, HOUR - 1)]
    assert all(human_duration(rounded(seconds)) == human_duration(seconds) for seconds in times)
    assert len({rounded(seconds) for seconds in times}) < 7000


def test_the_age_of_a_time() -> None:
    assert Ages(100.9)[seconds_of("1970-01-01T00:01:00Z")] == b'"40s"'


def test_a_time_in_the_future_is_invalid() -> None:
    assert [Ages(100.9)[time] for time in (101, 102, 103)] == [b'"0s"', b'"0s"', b'"<invalid>"']


@pytest.mark.parametrize("text", ["", "yesterday", "2020"])
def test_an_invalid_time_has_no_age(text: str) -> None:
    assert Ages(0)[seconds_of(text)] == b'"<unknown>"'


def test_the_bytes_behind_ages_are_there_without_an_age() -> None:
    ages = Ages(7 * DAY, behind=b"]")
    assert (ages[NONE], ages[None], ages[0]) == (b"]", b'"<unknown>"]', b'"7d"]')


def test_each_of_many_times_has_its_age() -> None:
    ages = Ages(YEAR)
    for _ in range(2):
        assert [ages[time] for time in range(0, YEAR, HOUR)] == [
            f'"{human_duration(YEAR - time)}"'.encode() for time in range(0, YEAR, HOUR)
        ]
