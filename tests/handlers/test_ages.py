from __future__ import annotations

import pytest

from clusterregistry.handlers.ages import age, human_duration, seconds_of

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


def test_the_age_of_a_time() -> None:
    assert age(seconds_of("1970-01-01T00:01:00Z"), now=100.9) == "40s"


@pytest.mark.parametrize("text", ["", "yesterday", "2020"])
def test_what_is_no_time_has_no_age(text: str) -> None:
    assert age(seconds_of(text), now=0) == "<unknown>"
