"""Durations as Go reads them. The refusals are those that kube-apiserver v1.36 gives."""

from __future__ import annotations

import pytest

from clusterregistry.apimachinery.meta.duration import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("-0", 0.0),
        ("10s", 10.0),
        ("+5s", 5.0),
        ("-5s", -5.0),
        ("1.s", 1.0),
        (".5s", 0.5),
        ("1h30m", 5400.0),
        ("1.5m2ms", 90.002),
        ("1us", 1e-6),
        ("1µs", 1e-6),
        ("1\N{GREEK SMALL LETTER MU}s", 1e-6),
        ("1ns", 1e-9),
        ("2562047h", 9223369200.0),
    ],
)
def test_what_is_a_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("abc", 'time: invalid duration "abc"'),
        (".s", 'time: invalid duration ".s"'),
        ("-", 'time: invalid duration "-"'),
        (" ", 'time: invalid duration " "'),
        ('a"b', r'time: invalid duration "a\"b"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
        ("10", 'time: missing unit in duration "10"'),
        ("5.", 'time: missing unit in duration "5."'),
        ("1h30", 'time: missing unit in duration "1h30"'),
        ("1x", 'time: unknown unit "x" in duration "1x"'),
        ("1_0s", 'time: unknown unit "_" in duration "1_0s"'),
        ("1s ", 'time: unknown unit "s " in duration "1s "'),
        ("1\u00ff", r'time: unknown unit "\xc3\xbf" in duration "1\xc3\xbf"'),
        ("1\0s", r'time: unknown unit "\x00s" in duration "1\x00s"'),
        ("\u0661s", r'time: invalid duration "\xd9\xa1s"'),
    ],
)
def test_what_is_none(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="time: ") as refused:
        parse_duration(text)
    assert str(refused.value) == message


def test_a_long_text_is_not_looked_at() -> None:
    with pytest.raises(ValueError, match="invalid duration") as refused:
        parse_duration("9" * 100_000 + "s")
    assert len(str(refused.value)) < 300
