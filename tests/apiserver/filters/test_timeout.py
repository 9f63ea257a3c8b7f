"""How long a request may take, and what its client may say about that."""

from __future__ import annotations

import asyncio

import pytest

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.filters import timeout
from clusterregistry.apiserver.http.response import Answer, resolve, text_response
from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import CLUSTERS

LONG = 3600.0


class Asked(Request):
    def __init__(self, method: str, query: str) -> None:
        super().__init__(method=method, path=CLUSTERS, query_string=query.encode(), headers={})
        self.info = request_info.parse(method, CLUSTERS, query.encode())

    async def read_body(self) -> tuple[bytes, bool]:
        return b"", False

    async def disconnected(self) -> None:
        """At once."""


async def never(_: Request) -> Answer:
    await asyncio.Event().wait()
    return text_response("never")


async def at_once(_: Request) -> Answer:
    return text_response("here")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("query", ["timeout=1ms", "%74imeout=1ms", "limit=1&timeout=1ms&timeout=1h"])
async def test_a_client_may_ask_for_less_time(method: str, query: str) -> None:
    with pytest.raises(errors.APIError) as refused:
        await resolve(timeout.filter_for(LONG)(never)(Asked(method, query)))
    assert (refused.value.code, refused.value.retry_after) == (504, 1)
    assert refused.value.status["message"] == "Timeout: request did not complete within the allotted timeout"


@pytest.mark.parametrize("query", ["timeout=1h", "timeout=0", "timeout=-1s", "timeout=", "timeoutSeconds=9"])
async def test_nobody_gets_more_time_than_the_server_gives(query: str) -> None:
    with pytest.raises(errors.APIError) as refused:
        await resolve(timeout.filter_for(0.001)(never)(Asked("POST", query)))
    assert refused.value.code == 504


async def test_each_of_many_has_its_time_and_so_has_who_comes_after_them() -> None:
    limited = timeout.filter_for(0.001)(never)
    for _ in range(2):
        many = (resolve(limited(Asked("POST", ""))) for _ in range(3))
        ends = await asyncio.gather(*map(asyncio.ensure_future, many), return_exceptions=True)
        assert [end.code for end in ends if isinstance(end, errors.APIError)] == [504] * 3


async def test_who_is_answered_in_time_goes_on_after_it() -> None:
    limited = timeout.filter_for(0.001)
    assert (await resolve(limited(at_once)(Asked("POST", "")))).status == 200
    with pytest.raises(errors.APIError):
        await asyncio.ensure_future(resolve(limited(never)(Asked("POST", ""))))
    present = asyncio.current_task()
    assert present is not None
    assert not present.cancelling()


async def test_a_request_that_others_end_is_not_said_to_be_late() -> None:
    request = asyncio.ensure_future(resolve(timeout.filter_for(LONG)(never)(Asked("POST", ""))))
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request


@pytest.mark.parametrize("query", ["watch=1&timeout=1ns", "watch=true&timeout=soon"])
async def test_a_watch_has_its_own_time(query: str) -> None:
    assert (await resolve(timeout.filter_for(LONG)(at_once)(Asked("GET", query)))).status == 200


def test_what_is_no_duration_is_refused(client: Client) -> None:
    refused = client.get(f"{CLUSTERS}?timeout=soon").refused(400, "BadRequest")
    assert refused["message"] == 'invalid timeout specified in the request URL - time: invalid duration "soon"'
    client.get(f"{CLUSTERS}?timeout=32s").expect(200)
