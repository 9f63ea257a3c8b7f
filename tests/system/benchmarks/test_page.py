"""RESULTS.md and its plots come from results.json alone."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.results import Results
from tests.system.benchmarks.made_up import record, some_results

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def rendered(tmp_path: Path) -> Path:
    some_results().write(tmp_path)
    assert main(["compare", "--render", "--into", str(tmp_path)]) == 0
    return tmp_path


def row(page: str, start: str) -> list[str]:
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_has_both_figures_their_ratio_the_noise_and_the_verdict(rendered: Path) -> None:
    page = (rendered / "RESULTS.md").read_text()
    ours = page.split("## Ours on etcd")[0]
    assert row(ours, "`get/c16`") == [
        "`get/c16`",
        "1,400 (1,300 to 1,500)",
        "62.5 (50.0 to 75.0)",
        "**22.4x**",
        "20.0 to 26.0",
        "31 !",
        "9.00x",
        "10.0",
        "10.0",
        "15x CPU",
        "met",
    ]


def test_both_engines_have_a_table(rendered: Path) -> None:
    page = (rendered / "RESULTS.md").read_text()
    on_etcd = page.split("## Ours on etcd")[1].split("## Start-up")[0]
    assert row(on_etcd, "`create/c16`")[3:5] == ["**5.00x**", "5.00 to 5.00"]


def test_missed_goals_stand_at_the_top(rendered: Path) -> None:
    page = (rendered / "RESULTS.md").read_text()
    summary = page.split("## How to read it")[0]
    missed = [line for line in summary.splitlines() if line.startswith("- ")]
    assert missed == [
        "- create/c16 on SQLite: 3.00x, wanted 4x throughput (not met)",
        "- mixed on etcd: -, wanted 4x CPU (not measured)",
        "- startup on SQLite: 8.67x, wanted 10x memory with objects (not met)",
        "- growth of get: 2.00x, wanted at most 1.5x with the most objects (not met)",
        "- longest wait while 100,000 objects are listed as JSON: 61.0 ms, wanted under 50 ms (not met)",
    ]
    assert "**8 of 13 goals are met.**" in summary


def test_what_failed_is_told(rendered: Path) -> None:
    assert "- `mixed` on etcd: no answer for 30 s" in (rendered / "RESULTS.md").read_text()


def test_every_plot_is_drawn_shown_and_labelled(rendered: Path) -> None:
    page = (rendered / "RESULTS.md").read_text()
    drawn = {path.name for path in (rendered / "plots").iterdir()}
    assert drawn == {"cpu.svg", "throughput.svg", "latency.svg", "growth-objects.svg", "growth-watchers.svg"}
    for name in drawn:
        assert f"(plots/{name})" in page
        assert ET.parse(rendered / "plots" / name).getroot().get("aria-label")
    words = [text.text for text in ET.parse(rendered / "plots" / "cpu.svg").iter(f"{SVG}text")]
    assert {"get/c16", "create/c16", "mixed", "ours on SQLite", "ours on etcd"} <= set(words)


def test_the_cpu_plot_marks_each_goal(rendered: Path) -> None:
    lines = ET.parse(rendered / "plots" / "cpu.svg").iter(f"{SVG}line")
    # get and create on SQLite, and get, create and mixed on etcd
    assert sum(line.get("class") == "goal" for line in lines) == 5


def test_plots_of_an_earlier_run_do_not_stay(rendered: Path) -> None:
    results = Results.read(rendered)
    results.document["growth"] = {}
    results.write(rendered)
    assert main(["compare", "--render", "--into", str(rendered)]) == 0
    assert not list((rendered / "plots").glob("growth-*"))
    assert "How cost grows" not in (rendered / "RESULTS.md").read_text()


def test_growth_alone_makes_a_page_that_speaks_of_no_peer(tmp_path: Path) -> None:
    results = Results.new(factor=1, rounds=1)
    results.document["growth"] = {"objects": {"100": {"get": record(60)}}, "watchers": {}, "stall": {}}
    results.write(tmp_path)
    assert main(["compare", "--render", "--into", str(tmp_path)]) == 0
    page = (tmp_path / "RESULTS.md").read_text()
    assert "kube-apiserver v" not in page
    assert "## Ours on" not in page


def test_a_fleet_has_its_figures_and_its_goals(tmp_path: Path) -> None:
    results = some_results()
    results.document["fleet"] = {
        "when": "2030-01-02",
        "members": 5000,
        "seconds": 180.0,
        "controller_cpu_pct": 41.5,
        "controller_rss_mb": 612.0,
        "registry_cpu_pct": 20.0,
        "gap_max_s": 44.0,
        "death_p99_s": 31.0,
    }
    results.write(tmp_path)
    assert main(["compare", "--render", "--into", str(tmp_path)]) == 0
    page = (tmp_path / "RESULTS.md").read_text()
    assert row(page, "controller, % of a core") == ["controller, % of a core", "41.5"]
    assert "- controller, MB: 612, wanted at most 600: not met" in page
    assert "- until a death is shown, 99th percentile, s: 31.0, wanted at most 35: met" in page
