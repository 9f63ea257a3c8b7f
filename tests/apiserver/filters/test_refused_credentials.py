"""Refused credentials in the log: who, from where and why; never the credential, and never too many lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clusterregistry.apiserver.authn.interface import CredentialRefused
from clusterregistry.apiserver.filters.authentication import MAX_LINES, RefusedCredentialLog
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.server.programs import Program


class World:
    """A log with a clock that stands still, and calls that wait for it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waiting: list[tuple[float, Callable[[], None]]] = []
        self.log = RefusedCredentialLog(clock=lambda: self.now, later=self._later)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self.waiting.append((self.now + seconds, call))

    def refuse(self, times: int, *, what: str = "token") -> None:
        for _ in range(times):
            self.log.log(CredentialRefused(lambda: what), "10.0.0.7")

    def after(self, seconds: float) -> None:
        self.now += seconds
        due = [call for at, call in self.waiting if at <= self.now]
        self.waiting = [(at, call) for at, call in self.waiting if at > self.now]
        for call in due:
            call()


def test_the_log_line_has_credential_address_and_reason(caplog: pytest.LogCaptureFixture) -> None:
    World().refuse(1, what="bearer token: the token file does not have it")
    assert caplog.messages == ["refused a bearer token: the token file does not have it, from 10.0.0.7"]


def test_of_too_many_in_a_second_the_rest_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.refuse(1000)
    assert len(caplog.messages) == MAX_LINES
    world.after(1.0)
    assert caplog.messages[MAX_LINES:] == [
        f"refused credentials not logged: {1000 - MAX_LINES}; at most {MAX_LINES} a second are"
    ]
    assert world.waiting == []
    world.refuse(1)
    assert len(caplog.messages) == MAX_LINES + 2


def test_a_flood_of_minutes_has_a_bounded_log(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    for _ in range(100):
        world.refuse(50)
        world.after(0.1)
    world.after(2.0)
    assert len(caplog.messages) <= 11 * (MAX_LINES + 2)
    counted = [int(message.split()[4].rstrip(";")) for message in caplog.messages if "not logged" in message]
    told = len(caplog.messages) - len(counted)
    assert sum(counted) + told == 5000


def test_nothing_in_a_description_can_make_a_second_line_or_a_long_one(caplog: pytest.LogCaptureFixture) -> None:
    World().refuse(1, what="certificate of CN=a\nINFO all is well" + "x" * 10_000)
    (message,) = caplog.messages
    assert "\n" not in message
    assert len(message) < 600


def test_an_omitted_credential_is_not_described() -> None:
    world, described = World(), []
    for _ in range(100):
        world.log.log(CredentialRefused(lambda: described.append(1) or "token"), "")  # type: ignore[func-returns-value]
    assert len(described) == MAX_LINES


def test_the_server_logs_it_at_the_default_level_without_the_token(tmp_path: Path) -> None:
    with Program(tmp_path / "program") as program:
        with program.client() as client:
            client.get(CLUSTERS, headers={"Authorization": None}).refused(403, "Forbidden")
            client.get(CLUSTERS).expect(200)
            assert "refused" not in program.logged()
            for _ in range(40):
                client.get(CLUSTERS, headers={"Authorization": "Bearer verysecret"}).refused(401, "Unauthorized")
        program.stop()
        lines = [line for line in program.logged().splitlines() if "refused a" in line]
    assert 1 <= len(lines) < 40
    assert lines[0].endswith(
        "WARNING clusterregistry.apiserver.filters.authentication: "
        "refused a bearer token: the token file does not have it, from 127.0.0.1"
    )
    assert "verysecret" not in program.logged()
