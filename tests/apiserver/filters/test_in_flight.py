"""Which requests need a slot, and when they release it."""

from __future__ import annotations

import asyncio

import pytest

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.user import MASTERS, User
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.fair_queue import FairQueue
from clusterregistry.apiserver.filters import in_flight
from clusterregistry.apiserver.filters.in_flight import BodyMemory
from clusterregistry.apiserver.filters.metrics import RequestMetrics
from clusterregistry.apiserver.http.response import Answer, Response, StreamResponse, resolve, text_response
from tests.apiserver.http.http_servers import Gate
from tests.apiserver.server.requests import BareRequest

ANN, BOB, ADMIN = User("ann"), User("bob"), User("admin", groups=(MASTERS,))
CLUSTERS = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"


def request_by(user: User, method: str = "GET", path: str = CLUSTERS) -> Request:
    request = BareRequest(method=method, target=path)
    request.user = user
    return request


class Server:
    """A handler behind the filter, with one slot for each kind of request."""

    def __init__(self, *, patience: float = 60.0, limit: int = 1) -> None:
        self.gate = Gate()
        self.metrics = RequestMetrics({})
        wrap = in_flight.filter_for(
            reading=FairQueue(limit, patience=patience),
            writing=FairQueue(limit, patience=patience),
            metrics=self.metrics,
        )
        self.handle = wrap(self.gate)

    def ask(self, method: str, path: str, user: User) -> asyncio.Task[Answer]:
        return asyncio.ensure_future(resolve(self.handle(request_by(user, method, path))))

    def rejected(self, kind: str) -> int:
        return self.metrics.flights[kind].turned_away


async def test_reads_and_writes_have_slots_of_their_own() -> None:
    server = Server()
    work = [server.ask("GET", CLUSTERS, ANN), server.ask("POST", CLUSTERS, ANN), server.ask("PUT", CLUSTERS, BOB)]
    await server.gate.has_seen(2)
    await asyncio.sleep(0)
    assert len(server.gate.came) == 2
    server.gate.open.set()
    await asyncio.gather(*work)
    assert len(server.gate.came) == 3


@pytest.mark.parametrize("path", ["/healthz", "/livez/ping", "/readyz?verbose"])
async def test_health_checks_need_no_slot(path: str) -> None:
    server = Server()
    work = [server.ask("GET", CLUSTERS, ANN), server.ask("GET", path, BOB)]
    await server.gate.has_seen(2)
    server.gate.open.set()
    await asyncio.gather(*work)


async def test_administrators_need_no_slot() -> None:
    server = Server()
    work = [server.ask("POST", CLUSTERS, ANN), *(server.ask("POST", CLUSTERS, ADMIN) for _ in range(3))]
    await server.gate.has_seen(4)
    server.gate.open.set()
    await asyncio.gather(*work)


async def test_a_slot_is_released_after_an_error() -> None:
    async def fail(_: Request) -> Answer:
        raise errors.bad_request("no")

    slots = FairQueue(1)
    handle = in_flight.filter_for(reading=slots, writing=None, metrics=RequestMetrics({}))(fail)
    for _ in range(3):
        with pytest.raises(errors.APIError, match="no"):
            await resolve(handle(request_by(ANN)))
    assert slots.try_acquire()


def test_a_slot_is_released_with_a_response_that_is_known_at_once() -> None:
    slots = FairQueue(1)

    def answer_or_fail(request: Request) -> Response:
        if request.method == "HEAD":
            raise errors.bad_request("no")
        return text_response("here")

    handle = in_flight.filter_for(reading=slots, writing=None, metrics=RequestMetrics({}))(answer_or_fail)
    for _ in range(3):
        assert isinstance(handle(request_by(ANN)), Response)
        with pytest.raises(errors.APIError, match="no"):
            handle(request_by(ANN, "HEAD"))
    assert slots.try_acquire()


@pytest.mark.parametrize("group", ["authorization.k8s.io", "authentication.k8s.io"])
async def test_a_review_counts_as_a_read(group: str) -> None:
    server = Server()
    work = [server.ask("POST", CLUSTERS, ANN), server.ask("POST", f"/apis/{group}/v1/someaccessreviews", BOB)]
    await server.gate.has_seen(2)
    server.gate.open.set()
    await asyncio.gather(*work)


async def test_a_request_that_waits_too_long_gets_a_429_and_is_counted() -> None:
    server = Server(patience=0.01)
    first = server.ask("POST", CLUSTERS, ANN)
    await server.gate.has_seen(1)
    with pytest.raises(errors.APIError) as refused:
        await server.ask("POST", CLUSTERS, BOB)
    assert refused.value.code == 429
    assert (server.rejected("mutating"), server.rejected("readOnly")) == (1, 0)
    server.gate.open.set()
    await first


async def test_a_watch_has_a_slot_only_until_its_stream_begins() -> None:
    async def stream(_: object) -> None:
        """Nothing to say."""

    async def watch(_: Request) -> Answer:
        return StreamResponse(200, b"text/plain", stream)

    slots = FairQueue(1)
    handle = in_flight.filter_for(reading=slots, writing=None, metrics=RequestMetrics({}))(watch)
    await resolve(handle(request_by(ANN)))
    assert slots.try_acquire()


async def test_without_limits_no_request_needs_a_slot() -> None:
    async def answer(_: Request) -> Answer:
        return text_response("here")

    handle = in_flight.filter_for(reading=None, writing=None, metrics=RequestMetrics({}))(answer)
    assert (await resolve(handle(request_by(ANN, "POST")))).status == 200


def test_bytes_of_bodies_are_limited_in_all_and_by_user() -> None:
    memory = BodyMemory(100)
    memory.acquire("noisy", 25)
    with pytest.raises(errors.APIError) as refused:
        memory.acquire("noisy", 1)
    assert (refused.value.code, refused.value.retry_after) == (429, 1)
    for user in ("ann", "bob", "cleo"):
        memory.acquire(user, 25)
    with pytest.raises(errors.APIError):
        memory.acquire("dan", 1)
    memory.release("noisy", 25)
    memory.acquire("dan", 25)
    for user in ("ann", "bob", "cleo", "dan"):
        memory.release(user, 25)
    assert (memory.taken, memory._held) == (0, {})
