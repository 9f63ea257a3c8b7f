from __future__ import annotations

import pytest

from clusterregistry.apiserver.options import flags
from clusterregistry.apiserver.options.unsupported import PLANNED
from tests.product import OPTIONS


def given(*arguments: str) -> dict[str, str]:
    reading = flags.read(arguments, OPTIONS)
    assert reading.problems == []
    return {each.flag: each.text for each in reading.given}


def problems(*arguments: str) -> list[str]:
    return [str(problem) for problem in flags.read(arguments, OPTIONS).problems]


def test_a_value_follows_an_equals_sign_or_a_space() -> None:
    assert given("--secure-port=1", "--data-dir", "d") == {"secure-port": "1", "data-dir": "d"}


def test_a_single_dash_does_as_well() -> None:
    assert given("-secure-port=1", "-data-dir", "d") == {"secure-port": "1", "data-dir": "d"}


def test_a_value_may_hold_an_equals_sign_or_begin_with_a_dash() -> None:
    assert given("--data-dir=a=b", "--request-timeout", "-5s") == {"data-dir": "a=b", "request-timeout": "-5s"}


def test_a_boolean_stands_bare_or_with_an_equals_sign() -> None:
    assert given("--anonymous-auth") == {"anonymous-auth": "true"}
    assert given("--anonymous-auth=false") == {"anonymous-auth": "false"}


def test_a_boolean_does_not_take_the_next_argument() -> None:
    assert problems("--anonymous-auth", "false") == ['unexpected argument "false" (a boolean is written --flag=false)']


@pytest.mark.parametrize(
    ("arguments", "level"),
    [(["-v"], "1"), (["-v", "3"], "3"), (["-v=2"], "2"), (["--v", "4"], "4"), (["--v=5"], "5")],
)
def test_verbosity_takes_a_number_if_one_follows(arguments: list[str], level: str) -> None:
    assert given(*arguments) == {"v": level}


def test_a_bare_verbosity_leaves_the_next_flag_alone() -> None:
    assert given("-v", "--secure-port=1") == {"v": "1", "secure-port": "1"}


@pytest.mark.parametrize("rest", [[], ["--data-dir=d"]])
def test_a_forgotten_value_is_named(rest: list[str]) -> None:
    assert problems("--secure-port", *rest) == ["--secure-port: needs a value (--secure-port=NUMBER)"]


def test_every_unknown_flag_is_named_with_what_was_probably_meant() -> None:
    assert problems("--secure-prot=1", "extra", "--zzz", "--yyy=1") == [
        "unknown option --secure-prot (did you mean --secure-port?)",
        'unexpected argument "extra"',
        "unknown option --zzz",
        "unknown option --yyy",
    ]


@pytest.mark.parametrize("arguments", [["--port", "9443"], ["--port=9443"], ["-p", "9443"], ["--zzz", "9443"]])
def test_an_unknown_flag_and_its_value_are_one_mistake(arguments: list[str]) -> None:
    (problem,) = problems(*arguments)
    assert problem.startswith(f"unknown option {arguments[0].partition('=')[0]}")


def test_the_flag_after_an_unknown_one_is_read_as_ever() -> None:
    reading = flags.read(["--zzz", "--secure-port=1"], OPTIONS)
    assert [each.text for each in reading.given] == ["1"]


@pytest.mark.parametrize("flag", PLANNED)
def test_a_promised_flag_is_refused_by_name_however_it_is_written(flag: str) -> None:
    expected = f"--{flag} is not supported yet"
    for arguments in ([f"--{flag}=x"], [f"--{flag}", "x"], [f"--{flag}"]):
        (problem,) = problems(*arguments)
        assert problem.startswith(expected)


def test_a_flag_works_or_is_promised_but_not_both() -> None:
    assert not set(OPTIONS.by_flag) & set(PLANNED)


def test_a_double_dash_ends_the_flags() -> None:
    assert problems("--", "--secure-port=1") == ['unexpected argument "--secure-port=1"']


@pytest.mark.parametrize("argument", ["-", "--=x", "---", "--=", "", "-=", "--\x00", "--\ud800"])
def test_garbage_is_a_problem_and_no_exception(argument: str) -> None:
    assert len(problems(argument)) == 1
