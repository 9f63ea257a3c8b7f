"""What the host cluster says is followed, whatever happens to the host cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from clusterregistry.apiserver.hostcluster.authentication_config import AuthenticationConfig
from clusterregistry.apiserver.hostcluster.config_watch import LONGEST_PAUSE, AuthConfigWatch
from clusterregistry.apiserver.webhooks.errors import CallFailed
from tests.apiserver.authn.certificates import root
from tests.apiserver.hostcluster.hosts import data

FIRST, SECOND = root("first").pem, root("second").pem
Step = dict[str, Any] | Exception


class EndOfStory(Exception):  # noqa: N818 - of a test
    pass


def configmap(ca: str, *, version: str = "1") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version}, "data": data(client_ca_file=ca)}


def event(ca: str, kind: str = "MODIFIED") -> dict[str, Any]:
    return {"type": kind, "object": configmap(ca, version="2")}


class Story:
    """A host cluster that answers what the story says, until it ends; sleeping takes no time."""

    def __init__(self, *chapters: tuple[Step, list[Step]]) -> None:
        """Each chapter is what is read, then what is watched until the watch ends."""
        self._chapters = list(chapters)
        self._watched: list[Step] = []
        self.paths: list[str] = []
        self.pauses: list[float] = []
        self.taken: list[str] = []
        self.refuse = ""

    async def get(self, path: str) -> dict[str, Any]:
        self.paths.append(path)
        read, self._watched = self._chapters.pop(0)
        return told(read)

    async def watch(self, path: str, *, silence: float) -> AsyncGenerator[dict[str, Any], None]:  # noqa: ARG002
        self.paths.append(path)
        for step in self._watched:
            yield told(step)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if not self._chapters:
            raise EndOfStory

    async def take(self, config: AuthenticationConfig) -> None:
        if config.client_cas == self.refuse:
            raise ValueError("these cannot be used")
        self.taken.append(config.client_cas)

    async def follow(self) -> AuthConfigWatch:
        following = AuthConfigWatch(self, sleep=self.sleep)
        assert "not read yet" in following.state.problem()
        try:
            await asyncio.wait_for(following.follow(self.take), 20)
        except EndOfStory:
            return following
        raise AssertionError


def told(step: Step) -> dict[str, Any]:
    if isinstance(step, Exception):
        raise step
    return step


async def test_it_is_read_and_then_watched() -> None:
    story = Story((configmap(FIRST), [event(SECOND), event(FIRST)]))
    following = await story.follow()
    assert story.taken == [FIRST, SECOND, FIRST]
    assert following.state.problem() == ""
    assert "resourceVersion=1&" in story.paths[1]
    assert "fieldSelector=metadata.name%3Dextension-apiserver-authentication" in story.paths[1]


async def test_what_is_the_same_is_taken_once() -> None:
    story = Story((configmap(FIRST), [event(FIRST)]), (configmap(FIRST), []))
    await story.follow()
    assert story.taken == [FIRST]


async def test_a_host_cluster_that_does_not_answer_is_asked_again_and_named() -> None:
    down = CallFailed("down")
    following = await Story((configmap(FIRST), [down]), (down, [])).follow()
    assert following.state.problem() == "down"
    story = Story((down, []), *[(down, [])] * 8, (configmap(FIRST), []))
    following = await story.follow()
    assert following.state.problem() == ""
    assert story.taken == [FIRST]
    assert max(story.pauses) <= LONGEST_PAUSE * 1.2


async def test_a_watch_that_cannot_go_on_begins_anew() -> None:
    for kind in ("DELETED", "ERROR"):
        story = Story((configmap(FIRST), [event("", kind), event(FIRST)]), (configmap(SECOND), []))
        await story.follow()
        assert story.taken == [FIRST, SECOND]


async def test_what_cannot_be_used_changes_nothing_and_is_named() -> None:
    story = Story((configmap(FIRST), [event("no certificate")]))
    following = await story.follow()
    assert story.taken == [FIRST]
    assert "client-ca-file: holds no certificates" in following.state.problem()
    story = Story((configmap(FIRST), [event(SECOND)]), (configmap(SECOND), []), (configmap(FIRST), []))
    story.refuse = SECOND
    following = await story.follow()
    assert story.taken == [FIRST]
    assert following.state.problem() == ""


async def test_a_fault_of_ours_does_not_end_it() -> None:
    story = Story((RuntimeError("ours"), []), (configmap(FIRST), []))
    await story.follow()
    assert story.taken == [FIRST]
