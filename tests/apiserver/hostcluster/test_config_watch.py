"""The configuration of the host cluster is followed, whatever happens to the host cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from clusterregistry.apiserver.hostcluster.authentication_config import AuthenticationConfig
from clusterregistry.apiserver.hostcluster.config_watch import BACKOFF, AuthConfigWatch
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.client.watch import Event
from tests.apiserver.authn.certificates import root
from tests.apiserver.hostcluster.hosts import data

FIRST, SECOND = root("first").pem, root("second").pem


class EndOfStory(Exception):  # noqa: N818 - of a test
    pass


def configmap(ca: str, *, version: str = "1") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version}, "data": data(client_ca_file=ca)}


def event(ca: str, kind: str = "MODIFIED") -> Event:
    return Event(kind, configmap(ca, version="2"))


class Story:
    """A configmap that answers as the story has it, until the story ends; sleeping takes no time."""

    def __init__(self, *chapters: tuple[dict[str, Any] | Exception, list[Event | Exception]]) -> None:
        """Each chapter is the object that is read, then the events until the watch ends."""
        self._chapters = list(chapters)
        self._events: list[Event | Exception] = []
        self.versions: list[str] = []
        self.pauses: list[float] = []
        self.taken: list[str] = []
        self.refuse = ""

    async def get(self) -> dict[str, Any]:
        read, self._events = self._chapters.pop(0)
        if isinstance(read, Exception):
            raise read
        return read

    async def watch(self, resource_version: str) -> AsyncGenerator[Event, None]:
        self.versions.append(resource_version)
        for step in self._events:
            if isinstance(step, Exception):
                raise step
            yield step

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


async def test_the_configmap_is_read_and_then_watched() -> None:
    story = Story((configmap(FIRST), [event(SECOND), event(FIRST)]))
    following = await story.follow()
    assert story.taken == [FIRST, SECOND, FIRST]
    assert following.state.problem() == ""
    assert story.versions == ["1"]


async def test_an_equal_configuration_is_used_once() -> None:
    story = Story((configmap(FIRST), [event(FIRST)]), (configmap(FIRST), []))
    await story.follow()
    assert story.taken == [FIRST]


async def test_a_host_cluster_that_does_not_answer_is_called_again_and_reported() -> None:
    down = CallFailed("down")
    following = await Story((configmap(FIRST), [down]), (down, [])).follow()
    assert following.state.problem() == "down"
    story = Story((down, []), *[(down, [])] * 8, (configmap(FIRST), []))
    following = await story.follow()
    assert following.state.problem() == ""
    assert story.taken == [FIRST]
    assert story.pauses[:2] == sorted(story.pauses[:2])
    assert BACKOFF.longest <= max(story.pauses) <= BACKOFF.longest * 1.2


async def test_a_configmap_that_is_deleted_is_read_anew() -> None:
    story = Story((configmap(FIRST), [event("", "DELETED"), event(FIRST)]), (configmap(SECOND), []))
    await story.follow()
    assert story.taken == [FIRST, SECOND]


async def test_a_configuration_that_cannot_be_used_changes_nothing_and_is_reported() -> None:
    story = Story((configmap(FIRST), [event("no certificate")]))
    following = await story.follow()
    assert story.taken == [FIRST]
    assert "client-ca-file: holds no certificates" in following.state.problem()
    story = Story((configmap(FIRST), [event(SECOND)]), (configmap(SECOND), []), (configmap(FIRST), []))
    story.refuse = SECOND
    following = await story.follow()
    assert story.taken == [FIRST]
    assert following.state.problem() == ""


async def test_an_unexpected_error_does_not_end_the_watch() -> None:
    story = Story((RuntimeError("ours"), []), (configmap(FIRST), []))
    await story.follow()
    assert story.taken == [FIRST]
