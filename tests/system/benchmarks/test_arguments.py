"""What cannot be measured is refused with words that help."""

from pathlib import Path

import pytest

from benchmarks.__main__ import main


def test_an_unknown_scenario_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ours", "--scenario", "get/c1,fetch"]) == 2
    said = capsys.readouterr().err
    assert "no scenario is named fetch" in said
    assert "list_selector" in said


def test_an_unknown_server_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--scenario", "get/c1", "--servers", "peer,nginx"]) == 2
    assert "no server is named nginx; there are: peer, sqlite, etcd" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ours", "--time", "0"], "0 is not a number above 0"),
        (["ours", "--time", "long"], "invalid"),
        (["ours", "--engine", "mysql"], "invalid choice"),
        (["compare", "--rounds", "0"], "0 is not a number above 0"),
        (["compare", "--kube-apiserver", "/not/there"], "there is no file /not/there"),
        (["growth", "--watchers", "10,-1"], "-1 is not a number above 0"),
        ([], "required"),
    ],
)
def test_a_bad_argument_is_named(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_rendering_what_is_not_there_says_how_to_measure_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--render", "--into", str(tmp_path)]) == 2
    assert "run `make bench-compare` first" in capsys.readouterr().err


def test_rendering_what_is_no_json_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "results.json").write_text("{")
    assert main(["compare", "--render", "--into", str(tmp_path)]) == 2
    assert "is not JSON" in capsys.readouterr().err


def test_scenarios_are_chosen_by_beginning_by_glob_and_delete_by_create(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ours", "--list", "--scenario", "get,list_1*/c8,delete/c16"]) == 0
    assert capsys.readouterr().out.split() == [
        "list_100/c8",
        "get/c1",
        "get/c16",
        "get/c64",
        "list_1000/c8",
        "create/c16",
        "list_10000/c8",
    ]
