"""What clients make of answers, of none, and of replicas that are not there."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from tests.system.faults.clients import Client
from tests.system.faults.connections import Answer, Connection, LostError, Target, UnreachableError
from tests.system.faults.faults import Fault, Violation
from tests.system.faults.nemesis import kill
from tests.system.faults.records import Action, Intent, Operation, Outcome, Result, Value, Version
from tests.system.faults.registry_api import joined, outcome_of
from tests.system.faults.servers import Server
from tests.system.faults.verdict import check
from tests.system.faults.workload import Size, StalledError, Workload


def outcome(action: Action, status: int, reason: str = "") -> Result:
    body = json.dumps({"kind": "Status", "reason": reason}).encode()
    return outcome_of(Intent(action=action, key="a"), Answer(status, body)).result


@pytest.mark.parametrize("status", [500, 503, 504])
@pytest.mark.parametrize("action", list(Action))
def test_after_a_failure_of_the_server_the_outcome_is_unknown(action: Action, status: int) -> None:
    assert outcome(action, status) is Result.UNKNOWN


def test_a_request_that_was_not_let_in_did_nothing() -> None:
    assert outcome(Action.UPDATE, 429) is Result.REFUSED


def test_refusals_say_what_the_key_is() -> None:
    assert outcome(Action.CREATE, 409, "AlreadyExists") is Result.EXISTS
    assert outcome(Action.UPDATE, 409, "Conflict") is Result.CONFLICT
    assert outcome(Action.GET, 404, "NotFound") is Result.ABSENT


def test_answers_that_no_request_of_the_workload_should_get_are_kept() -> None:
    assert outcome(Action.CREATE, 409, "Conflict") is Result.UNEXPECTED
    assert outcome(Action.CREATE, 404) is Result.UNEXPECTED
    assert outcome(Action.APPLY, 409, "AlreadyExists") is Result.UNEXPECTED
    assert outcome(Action.APPLY, 404, "NotFound") is Result.UNEXPECTED
    assert outcome(Action.LIST, 404, "NotFound") is Result.UNEXPECTED
    assert outcome(Action.UPDATE, 422) is Result.UNEXPECTED
    assert outcome(Action.GET, 200) is Result.UNEXPECTED
    torn = outcome_of(Intent(action=Action.GET, key="a"), Answer(200, b'{"metadata":'))
    assert (torn.result, torn.text) == (Result.UNEXPECTED, '200 {"metadata":')


def page(revision: int, *names: str, more: str = "") -> Outcome:
    items = {name: Version(revision - 1, f"uid-{name}", Value("x1")) for name in names}
    return Outcome(result=Result.OK, revision=revision, items=items, more=more)


def test_pages_make_one_list_of_one_revision() -> None:
    whole = joined(page(12, "a", "b", more="c"), page(12, "c"))
    assert whole == page(12, "a", "b", "c")
    assert joined(page(12, "a", more="b"), page(13, "b")).result is Result.UNEXPECTED
    assert joined(page(12, "a", more="b"), page(12, "a", "b")).result is Result.UNEXPECTED
    assert joined(page(12, "a", more="b"), Outcome(result=Result.UNKNOWN)).result is Result.UNKNOWN


async def test_a_list_in_pages_is_one_operation(tmp_path: Path) -> None:
    server = Server(tmp_path)
    async with server.running():
        operations: list[Operation] = []
        client = Client("client", [server.target()], operations=operations)
        for name in "abcde":
            await client.perform(Intent(action=Action.CREATE, key=name, token=f"x-{name}"))
        listed = await client.perform(Intent(action=Action.LIST, limit=2))
        client.close()
    assert "".join(listed.items or {}) == "abcde"
    assert listed.revision == operations[4].outcome.revision
    assert len(operations) == 6


def nobody() -> Target:
    """An address where nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    return Target(url=url, trust=ssl.create_default_context(), token="none")


async def test_where_nobody_listens_nothing_is_sent() -> None:
    with pytest.raises(UnreachableError, match=r"https://127\.0\.0\.1:"):
        await Connection.open(nobody())


async def test_an_answer_that_does_not_come_is_lost() -> None:
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connection = Connection(replace(nobody(), url=f"http://127.0.0.1:{port}"), reader, writer)
    with pytest.raises(LostError, match="GET /readyz: no answer in time"):
        await connection.exchange("GET", "/readyz", patience=0.05)
    connection.close()
    for accepted in writers:
        accepted.close()
    server.close()
    await server.wait_closed()


async def test_a_client_that_is_stopped_does_not_take_a_late_answer_for_the_next(tmp_path: Path) -> None:
    server = Server(tmp_path)
    async with server.running():
        operations: list[Operation] = []
        client = Client("client", [server.target()], operations=operations)
        await client.perform(Intent(action=Action.GET, key="a"))
        stopped = asyncio.create_task(client.perform(Intent(action=Action.CREATE, key="a", token="x1")))
        await asyncio.sleep(0)  # sent, and not answered yet
        stopped.cancel()
        await asyncio.wait([stopped])
        listed = await client.perform(Intent(action=Action.LIST))
        client.close()
    assert [operation.outcome.result for operation in operations] == [Result.ABSENT, Result.UNKNOWN, Result.OK]
    assert listed.items is not None


async def test_clients_go_on_to_a_replica_that_is_there(tmp_path: Path) -> None:
    server = Server(tmp_path)
    async with server.running():
        workload = Workload([nobody(), server.target()], seed=1, size=Size(writers=2, readers=1, watchers=2))
        async with workload.running():
            while workload.operations < 50:
                await workload.checkpoint()
    verdict = check(workload.record(), sole_writer=True)
    assert verdict.violations == [], verdict.report()
    assert verdict.acknowledged > 0
    assert verdict.connections >= 4


async def test_a_run_in_which_nobody_answers_any_more_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.system.faults.workload.CATCH_UP_SECONDS", 0.5)
    server = Server(tmp_path)
    async with server.running():
        workload = Workload([server.target()], seed=1, size=Size(writers=1, readers=0, watchers=1))

        async def lose_it() -> None:
            async with workload.running():
                kill(server.pid)
                await server.ended()
                await workload.checkpoint()

        with pytest.raises(ExceptionGroup) as caught:
            await lose_it()
    assert caught.group_contains(StalledError, match="no replica did a list within 0.5 s")
    violations = check(workload.record(), sole_writer=True).violations
    assert Violation(Fault.TROUBLE, "no replica did a list within 0.5 s") in violations
