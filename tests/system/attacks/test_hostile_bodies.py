"""The worst bodies of each content type: what one of them costs the server. ``make hostile-bodies`` has the figures."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator

import pytest

from tests.apiserver.api.objects import cluster
from tests.apiserver.server.programs import Program
from tests.system.attacks.raw import Raw
from tools.hostile_cases import CLUSTERS, LIMIT, REVIEWS, USER_TOKEN, Case, cases

MEGABYTES, CPU_SECONDS = 200, 2.0
"""The goals. None of them takes more than two thirds of that."""

ATTEMPTS = 3
"""How often a body is sent that costs more: other programs make ours slower, and the server has work of its own."""

CASES = {f"{case.content_type.partition('/')[2]}: {case.name}": case for case in cases() if not case.is_audited}


@pytest.fixture(scope="module")
def victim(raw_program: Program) -> Iterator[Raw]:
    """A server with the cluster that patches change."""
    with raw_program.client() as client:
        client.post(CLUSTERS, cluster("victim")).expect(201)
        yield Raw(raw_program)
        client.get(CLUSTERS).expect(200)
    assert "Traceback" not in raw_program.logged()


@pytest.fixture(scope="module")
def raw_program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with Program(tmp_path_factory.mktemp("hostile")) as program:
        yield program


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_body_costs_little_memory_and_little_time(victim: Raw, case: Case) -> None:
    body = case.make()
    assert len(body) <= LIMIT
    program = victim.program
    headers = [f"Content-Type: {case.content_type}".encode(), f"Accept: {case.accept}".encode()]
    costs: list[float] = []
    while len(costs) < ATTEMPTS and min(costs, default=math.inf) >= CPU_SECONDS:
        program.forget_peak()
        memory, cpu = program.resident_bytes(), program.cpu_seconds()
        reply = victim.ask(
            case.path.encode(), method=case.method.encode(), token=case.token, headers=headers, body=body
        )
        costs.append(program.cpu_seconds() - cpu)
        assert reply.status < 500
        assert (program.peak_bytes() - memory) / 1e6 < MEGABYTES
        assert len(reply.received) < 2 * LIMIT
    assert min(costs) < CPU_SECONDS, costs


def test_many_at_once_are_worked_on_a_few_at_a_time(victim: Raw) -> None:
    """Each is decoded to some twenty megabytes; those that wait have their bodies: 23 MB of a user's 24 MiB."""
    body = CASES["json: requirements with values"].make()
    program = victim.program
    program.forget_peak()
    before, statuses = program.resident_bytes(), []

    def send() -> None:
        headers = [b"Content-Type: application/json"]
        reply = victim.ask(REVIEWS.encode(), method=b"POST", token=USER_TOKEN, headers=headers, body=body, seconds=120)
        statuses.append(reply.status)

    threads = [threading.Thread(target=send) for _ in range(14)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [201] * 14
    assert (program.peak_bytes() - before) / 1e6 < MEGABYTES
