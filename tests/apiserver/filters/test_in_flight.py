"""Which requests need a seat, and when they give it back."""

from __future__ import annotations

import asyncio

import pytest

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.user import MASTERS, User
from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.filters import in_flight
from clusterregistry.apiserver.filters.in_flight import FairQueue
from clusterregistry.apiserver.http.response import Answer, Response, StreamResponse, resolve, text_response
from clusterregistry.apiserver.metrics import RequestMetrics
from tests.apiserver.http.http_servers import Gate

ANN, BOB, ADMIN = User("ann"), User("bob"), User("admin", groups=(MASTERS,))
CLUSTERS = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"


class Asked(Request):
    def __init__(self, method: str, path: str, user: User) -> None:
        super().__init__(method=method, path=path, query_string=b"", headers={})
        self.info = request_info.parse(method, path, b"")
        self.user = user

    async def read_body(self) -> tuple[bytes, bool]:
        return b"", False

    async def disconnected(self) -> None:
        """At once."""


class Office:
    """A handler that works on what it is let do, behind the filter, with one seat for each kind."""

    def __init__(self, *, patience: float = 60.0, limit: int = 1) -> None:
        self.gate = Gate()
        self.metrics = RequestMetrics(())
        wrap = in_flight.filter_for(
            reading=FairQueue(limit, patience=patience),
            writing=FairQueue(limit, patience=patience),
            metrics=self.metrics,
        )
        self.handle = wrap(self.gate)

    def ask(self, method: str, path: str, user: User) -> asyncio.Task[Answer]:
        return asyncio.ensure_future(resolve(self.handle(Asked(method, path, user))))

    def turned_away(self, kind: str) -> int:
        return self.metrics.flights[kind].turned_away


async def test_reading_and_writing_do_not_wait_for_each_other_but_for_their_own_kind() -> None:
    office = Office()
    work = [office.ask("GET", CLUSTERS, ANN), office.ask("POST", CLUSTERS, ANN), office.ask("PUT", CLUSTERS, BOB)]
    await office.gate.has_seen(2)
    await asyncio.sleep(0)
    assert len(office.gate.came) == 2
    office.gate.open.set()
    await asyncio.gather(*work)
    assert len(office.gate.came) == 3


@pytest.mark.parametrize("path", ["/healthz", "/livez/ping", "/readyz?verbose"])
async def test_health_is_told_however_busy_it_is(path: str) -> None:
    office = Office()
    work = [office.ask("GET", CLUSTERS, ANN), office.ask("GET", path, BOB)]
    await office.gate.has_seen(2)
    office.gate.open.set()
    await asyncio.gather(*work)


async def test_an_administrator_is_never_held_up() -> None:
    office = Office()
    work = [office.ask("POST", CLUSTERS, ANN), *(office.ask("POST", CLUSTERS, ADMIN) for _ in range(3))]
    await office.gate.has_seen(4)
    office.gate.open.set()
    await asyncio.gather(*work)


async def test_a_seat_is_given_back_after_an_error_too() -> None:
    async def fail(_: Request) -> Answer:
        raise errors.bad_request("no")

    seats = FairQueue(1)
    handle = in_flight.filter_for(reading=seats, writing=None, metrics=RequestMetrics(()))(fail)
    for _ in range(3):
        with pytest.raises(errors.APIError, match="no"):
            await resolve(handle(Asked("GET", CLUSTERS, ANN)))
    assert seats.take_at_once()


def test_what_is_answered_at_once_gives_its_seat_back_at_once() -> None:
    seats = FairQueue(1)

    def answer_or_fail(request: Request) -> Response:
        if request.method == "HEAD":
            raise errors.bad_request("no")
        return text_response("here")

    handle = in_flight.filter_for(reading=seats, writing=None, metrics=RequestMetrics(()))(answer_or_fail)
    for _ in range(3):
        assert isinstance(handle(Asked("GET", CLUSTERS, ANN)), Response)
        with pytest.raises(errors.APIError, match="no"):
            handle(Asked("HEAD", CLUSTERS, ANN))
    assert seats.take_at_once()


@pytest.mark.parametrize("group", ["authorization.k8s.io", "authentication.k8s.io"])
async def test_a_review_counts_as_a_read(group: str) -> None:
    office = Office()
    work = [office.ask("POST", CLUSTERS, ANN), office.ask("POST", f"/apis/{group}/v1/someaccessreviews", BOB)]
    await office.gate.has_seen(2)
    office.gate.open.set()
    await asyncio.gather(*work)


async def test_who_waits_in_vain_gets_a_429_and_is_counted() -> None:
    office = Office(patience=0.01)
    first = office.ask("POST", CLUSTERS, ANN)
    await office.gate.has_seen(1)
    with pytest.raises(errors.APIError) as refused:
        await office.ask("POST", CLUSTERS, BOB)
    assert refused.value.code == 429
    assert (office.turned_away("mutating"), office.turned_away("readOnly")) == (1, 0)
    office.gate.open.set()
    await first


async def test_a_watch_has_its_seat_only_until_its_stream_begins() -> None:
    async def stream(_: object) -> None:
        """Nothing to say."""

    async def watch(_: Request) -> Answer:
        return StreamResponse(200, b"text/plain", stream)

    seats = FairQueue(1)
    handle = in_flight.filter_for(reading=seats, writing=None, metrics=RequestMetrics(()))(watch)
    await resolve(handle(Asked("GET", CLUSTERS, ANN)))
    assert seats.take_at_once()


async def test_without_limits_everybody_is_worked_for() -> None:
    async def answer(_: Request) -> Answer:
        return text_response("here")

    handle = in_flight.filter_for(reading=None, writing=None, metrics=RequestMetrics(()))(answer)
    assert (await resolve(handle(Asked("POST", CLUSTERS, ANN)))).status == 200
