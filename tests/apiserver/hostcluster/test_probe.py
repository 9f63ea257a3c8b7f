"""The probe notices whether the host cluster answers, also without requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from clusterregistry.apiserver.hostcluster import probe as probing
from clusterregistry.apiserver.hostcluster.probe import CALM_SECONDS, FAILING_SECONDS, Probe, keep_probing
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState

TOKENS = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": {"authenticated": False}}
ACCESS = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": {"allowed": False}}


class EndOfStory(Exception):  # noqa: N818 - of a test
    pass


class Answers:
    """Answers one after the other; sleeping takes no time, and ends the test after the last."""

    def __init__(self, *answers: dict[str, Any] | CallFailed) -> None:
        self._answers = list(answers)
        self.asked: list[Mapping[str, Any]] = []
        self.elapsed = 0.0
        self.asked_at: list[float] = []
        self.problems: list[str] = []
        self.state = HealthState("the host cluster", consequence="nothing works", at_first="not asked yet")

    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(document)
        self.asked_at.append(self.elapsed)
        answer = self._answers.pop(0)
        if isinstance(answer, CallFailed):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        self.elapsed += seconds
        self.problems.append(self.state.problem())
        if not self._answers:
            raise EndOfStory

    async def probe(self, probe: Probe) -> None:
        with pytest.raises(EndOfStory):
            await keep_probing(probe, self.state, sleep=self.sleep)


async def test_a_host_cluster_that_fails_is_probed_more_often_until_it_answers() -> None:
    answers = Answers(TOKENS, CallFailed("down"), TOKENS)
    await answers.probe(probing.token_probe(answers))
    assert [*dict.fromkeys(answers.problems)] == ["", "down"]
    assert answers.problems[-1] == ""
    assert answers.asked_at == [0, CALM_SECONDS, CALM_SECONDS + FAILING_SECONDS]


async def test_a_failure_of_a_request_is_probed_soon() -> None:
    answers = Answers(TOKENS, TOKENS)

    async def sleep(seconds: float) -> None:
        answers.state.failed("down")
        await answers.sleep(seconds)

    with pytest.raises(EndOfStory):
        await keep_probing(probing.token_probe(answers), answers.state, sleep=sleep)
    assert answers.asked_at == [0, FAILING_SECONDS]


async def test_an_answer_of_another_kind_is_a_failure() -> None:
    for make in (probing.token_probe, probing.access_probe):
        answers = Answers({"kind": "Status"})
        await answers.probe(make(answers))
        assert "its answer is no" in answers.problems[0]


async def test_probes_are_real_reviews_about_no_user() -> None:
    tokens, access = Answers(TOKENS), Answers(ACCESS)
    await tokens.probe(probing.token_probe(tokens))
    await access.probe(probing.access_probe(access))
    assert tokens.asked[0]["spec"]["token"]
    assert access.asked[0]["spec"] == {
        "user": "system:anonymous",
        "nonResourceAttributes": {"path": "/livez", "verb": "get"},
    }
