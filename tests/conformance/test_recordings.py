"""The recordings, the list of deviations and the list of exclusions agree with each other."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tools import conformance


def recordings() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each case and transcript: its title, and its steps or commands."""
    for file in sorted((conformance.DATA / "cases").glob("*.json")):
        for case in json.loads(file.read_text()):
            assert case["area"].startswith(file.stem)
            yield f"{case['area']}/{case['name']}", case["steps"]
    for path in [*conformance.all_transcripts().values(), *sorted(conformance.GUIDE.glob("*.json"))]:
        transcript = json.loads(path.read_text())
        yield f"{transcript['area']}/{transcript['name']}", transcript["commands"]


def described() -> set[str]:
    """The titles that DEVIATIONS.md lists, without those that are only explained there."""
    text = (conformance.DATA / "DEVIATIONS.md").read_text()
    return set(re.findall(r"^- `([^`]+)`$", text, re.MULTILINE))


def test_every_deviation_in_the_data_is_described_and_the_other_way_round() -> None:
    assert {title for title, steps in recordings() if any("ours" in step for step in steps)} == described()


def test_what_deviations_explain_exists() -> None:
    text = (conformance.DATA / "DEVIATIONS.md").read_text()
    titles = set(re.findall(r"^- `([^`]+)`", text, re.MULTILINE))
    assert titles <= {title for title, _ in recordings()}


def test_an_exclusion_names_something_that_exists_and_a_reason() -> None:
    chosen = conformance.exclusions()
    for patterns, titles in ((chosen.replay, conformance.all_cases()), (chosen.kubectl, conformance.all_transcripts())):
        for pattern, reason in patterns.items():
            assert len(conformance.without(titles, [pattern])) < len(titles), pattern
            assert reason


def test_what_is_excluded_does_not_run() -> None:
    chosen = conformance.Exclusions(replay={"apply/*": "why"}, kubectl={"ssa/*": "why"})
    assert "apply" not in chosen.cases()
    assert "crud/put without resourceVersion" in chosen.cases()["crud"]
    assert "ssa/conflict" not in chosen.transcripts()
    assert "get/empty" in chosen.transcripts()


def test_titles_are_unique() -> None:
    titles = conformance.all_cases()
    assert len(titles) == len(set(titles))
