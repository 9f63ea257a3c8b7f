"""How long a request may take, by the server and by its client."""

from __future__ import annotations

import asyncio

import pytest

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.filters import timeout
from clusterregistry.apiserver.http.response import Answer, resolve, text_response
from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.server.requests import BareRequest

LONG = 3600.0


def request(method: str, query: str = "") -> Request:
    return BareRequest(method=method, target=f"{CLUSTERS}?{query}")


async def never(_: Request) -> Answer:
    await asyncio.Event().wait()
    return text_response("never")


async def at_once(_: Request) -> Answer:
    return text_response("here")


@pytest.mark.parametrize(
    ("method", "query"),
    [("GET", "timeout=1ms"), ("POST", "%74imeout=1ms"), ("DELETE", "limit=1&timeout=1ms&timeout=1h")],
)
async def test_a_client_may_ask_for_less_time(method: str, query: str) -> None:
    with pytest.raises(errors.APIError) as refused:
        await resolve(timeout.filter_for(LONG)(never)(request(method, query)))
    assert (refused.value.code, refused.value.retry_after) == (504, None)
    assert refused.value.status["message"] == "Timeout: request did not complete within the allotted timeout"


@pytest.mark.parametrize("query", ["timeout=1h", "timeout=0", "timeout=-1s", "timeout=", "timeoutSeconds=9"])
async def test_no_client_gets_more_time_than_the_server_gives(query: str) -> None:
    with pytest.raises(errors.APIError) as refused:
        await resolve(timeout.filter_for(0.001)(never)(request("POST", query)))
    assert refused.value.code == 504


async def test_each_of_many_requests_expires_and_so_do_later_ones() -> None:
    limited = timeout.filter_for(0.001)(never)
    for _ in range(2):
        many = (resolve(limited(request("POST"))) for _ in range(3))
        ends = await asyncio.gather(*map(asyncio.ensure_future, many), return_exceptions=True)
        assert [end.code for end in ends if isinstance(end, errors.APIError)] == [504] * 3


async def test_the_task_of_a_request_is_not_left_cancelled() -> None:
    limited = timeout.filter_for(0.001)
    assert (await resolve(limited(at_once)(request("POST")))).status == 200
    with pytest.raises(errors.APIError):
        await asyncio.ensure_future(resolve(limited(never)(request("POST"))))
    present = asyncio.current_task()
    assert present is not None
    assert not present.cancelling()


async def test_a_request_cancelled_elsewhere_gets_no_504() -> None:
    cancelled = asyncio.ensure_future(resolve(timeout.filter_for(LONG)(never)(request("POST"))))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled


@pytest.mark.parametrize("query", ["watch=1&timeout=1ns", "watch=true&timeout=soon"])
async def test_a_watch_has_its_own_timeout(query: str) -> None:
    assert (await resolve(timeout.filter_for(LONG)(at_once)(request("GET", query)))).status == 200


def test_an_invalid_duration_is_refused(client: Client) -> None:
    refused = client.get(f"{CLUSTERS}?timeout=soon").refused(400, "BadRequest")
    assert refused["message"] == 'invalid timeout specified in the request URL - time: invalid duration "soon"'
    client.get(f"{CLUSTERS}?timeout=32s").expect(200)
