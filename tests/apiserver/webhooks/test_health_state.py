from __future__ import annotations

import logging

import pytest

from clusterregistry.apiserver.webhooks.health_state import HealthState


def test_a_state_is_logged_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    state = HealthState("the hook", consequence="requests get a 503")
    state.worked()
    for _ in range(3):
        state.failed("down")
    for _ in range(3):
        state.worked()
    state.failed("down again")
    assert [record.getMessage() for record in caplog.records] == [
        "the hook fails: down; requests get a 503",
        "the hook answers again",
        "the hook fails: down again; requests get a 503",
    ]
