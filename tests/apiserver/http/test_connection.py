"""Requests of one connection are answered in their order, and nothing else is taken for a request."""

from __future__ import annotations

import asyncio

import pytest

from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import Answer, Reply, Response, resolve, text_response
from tests.apiserver.http.http_servers import SOON, Endless, Gate, body, get, path, post, serving, within


async def test_a_pipelined_request_waits_for_the_one_before() -> None:
    gate = Gate()
    async with serving(gate) as served, await served.connect() as client:
        client.send(get("/first") + get("/second"))
        await gate.has_seen(1)
        await asyncio.sleep(SOON)
        assert gate.came == ["/first"]
        gate.open.set()
        assert [(await client.answer())[1] for _ in range(2)] == [b"/first", b"/second"]


async def test_malformed_input_is_refused_after_the_response_before_it() -> None:
    gate = Gate()
    async with serving(gate) as served, await served.connect() as client:
        client.send(get("/first") + "nonsense\r\n\r\n" + get("/never"))
        await gate.has_seen(1)
        assert await client.receives_nothing()
        gate.open.set()
        received = await client.everything()
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert received.index(b"/first") < received.index(b"HTTP/1.1 400 Bad Request")
    assert received.endswith(b"Invalid HTTP request received.")
    assert gate.came == ["/first"]


async def test_thousands_of_pipelined_requests_are_all_answered() -> None:
    count = 5000
    async with serving(path) as served, await served.connect() as client:
        client.send("".join(get(f"/{number}") for number in range(count)))
        assert [(await client.answer())[1] for _ in range(count)] == [b"/%d" % number for number in range(count)]


@pytest.mark.parametrize("at_once", [True, False])
async def test_other_tasks_run_between_pipelined_requests(*, at_once: bool) -> None:
    count, turns = 50, 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def turns_so_far(_: IncomingRequest) -> Reply:
        answer = text_response(str(turns))
        return answer if at_once else resolve(answer)

    async with serving(turns_so_far) as served, await served.connect() as client:
        counting = asyncio.create_task(count_turns())
        client.send(get() * count)
        seen = [int((await client.answer())[1]) for _ in range(count)]
        counting.cancel()
    assert len(set(seen)) == count


async def test_a_pipelined_body_waits_with_its_request() -> None:
    gate = Gate()

    async def first_gate_then_body(request: IncomingRequest) -> Answer:
        return await (gate if request.path == "/gate" else body)(request)

    large = "x" * 200_000
    async with serving(first_gate_then_body) as served, await served.connect() as client:
        client.send(get("/gate") + post(large) + get("/gate"))
        await gate.has_seen(1)
        gate.open.set()
        assert (await client.answer())[1] == b"/gate"
        assert (await client.answer())[1] == large.encode()
        assert (await client.answer())[1] == b"/gate"


async def test_after_connection_close_nothing_is_answered() -> None:
    async with serving(path) as served, await served.connect() as client:
        client.send(get("/last", "Connection: close") + get("/more"))
        received = await client.everything()
    assert b"connection: close" in received
    assert received.endswith(b"/last")
    assert received.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("headers", [[], ["Connection: keep-alive"]], ids=["silent", "asks to be kept"])
async def test_an_http_1_0_connection_ends_with_its_answer(headers: list[str]) -> None:
    async with serving(path) as served, await served.connect() as client:
        client.send(get("/old", *headers, version="1.0"))
        received = await client.everything()
    assert b"connection: close" in received
    assert received.endswith(b"/old")


async def test_an_upgrade_is_ignored_and_nothing_behind_it_is_parsed() -> None:
    """The parser takes the body of a request to upgrade for the other protocol: nothing may be made of it."""
    smuggled = get("/smuggled")
    async with serving(path) as served, await served.connect() as client:
        client.send(post(smuggled, "Connection: Upgrade", "Upgrade: h2c"))
        client.send(get("/after"))
        received = await client.everything()
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert b"connection: close" in received
    assert received.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("announced", ["Content-Length: 4", "Transfer-Encoding: chunked"])
async def test_an_upgrade_with_a_body_is_refused(announced: str) -> None:
    """The body of a DELETE may hold preconditions."""
    async with serving(body) as served, await served.connect() as client:
        client.send(get("/", announced, "Connection: Upgrade", "Upgrade: h2c", method="DELETE"))
        client.send("4\r\nbody\r\n0\r\n\r\n" if "chunked" in announced else "body")
        assert (await client.everything()).startswith(b"HTTP/1.1 400 Bad Request\r\n")


@pytest.mark.parametrize("length", [[], ["Content-Length: 0"]], ids=["none", "empty"])
async def test_an_upgrade_without_a_body_is_answered(length: list[str]) -> None:
    async with serving(body) as served, await served.connect() as client:
        client.send(get("/", "Connection: Upgrade", "Upgrade: h2c", *length))
        assert (await client.everything()).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_the_answer_to_head_has_no_body() -> None:
    async with serving(path) as served, await served.connect() as client:
        client.send(get("/four", method="HEAD") + get("/next"))
        assert b"content-length: 5\r\n" in await client.until(b"\r\n\r\n")
        assert (await client.answer())[1] == b"/next"


async def test_unknown_methods_reach_the_handler() -> None:
    async def method(request: IncomingRequest) -> Answer:
        return text_response(request.method)

    async with serving(method) as served, await served.connect() as client:
        for name in ("BREW", "CONNECT", "DESCRIBE", "GET"):
            client.send(get("/", method=name))
            assert (await client.answer())[1] == name.encode()


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/a%20b?c=d%20e", "/a b|c=d%20e"),
        ("https://host:1/a?b=c#d", "/a|b=c"),
        ("/a#b?c", "/a|"),
        ("//a//b?", "//a//b|"),
        ("*", "*|"),
        ("/a?b?c", "/a|b?c"),
    ],
)
async def test_targets(target: str, expected: str) -> None:
    async def parts(request: IncomingRequest) -> Answer:
        return text_response(f"{request.path}|{request.query_string.decode()}")

    async with serving(parts) as served, await served.connect() as client:
        client.send(get(target))
        assert (await client.answer())[1].decode() == expected


async def test_of_a_repeated_header_the_first_counts() -> None:
    async def header(request: IncomingRequest) -> Answer:
        return text_response(request.header("x-some"))

    async with serving(header) as served, await served.connect() as client:
        client.send(get("/", "X-Some: one", "x-some: two"))
        assert (await client.answer())[1] == b"one"


async def test_a_disconnect_behind_pipelined_requests_is_noticed() -> None:
    endless = Endless()
    async with serving(endless) as served, await served.connect() as client:
        client.send(get("/endless") + get("/more") + get("/more"))
        await within(endless.begun)
        client.abort()
        await within(endless.left)


async def test_a_disconnect_behind_an_unread_body_is_noticed() -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    async def waiting(request: IncomingRequest) -> Answer:
        begun.set()
        await request.disconnected()
        left.set()
        return text_response("to nobody")

    size = 16 * 1024 * 1024
    async with serving(waiting) as served, await served.connect() as client:
        client.send(get("/", f"Content-Length: {size}"))
        await within(begun)
        assert await client.flood(size) == 0
        client.abort()
        await within(left)


async def test_only_a_request_that_has_to_wait_takes_a_task() -> None:
    def whether_there_is_one(request: IncomingRequest) -> Reply:
        async def ask() -> Answer:
            return text_response(str(asyncio.current_task() is not None))

        return ask() if request.path == "/later" else text_response(str(asyncio.current_task() is not None))

    async with serving(whether_there_is_one) as served, await served.connect() as client:
        for target, expected in (("/at-once", b"False"), ("/later", b"True"), ("/at-once", b"False")):
            client.send(get(target))
            assert (await client.answer())[1] == expected


async def test_an_answer_that_is_known_at_once_waits_for_the_one_before() -> None:
    gate = Gate()

    def first_gate_then_path(request: IncomingRequest) -> Reply:
        return gate(request) if request.path == "/gate" else path(request)

    async with serving(first_gate_then_path) as served, await served.connect() as client:
        client.send(get("/gate") + get("/at-once"))
        await gate.has_seen(1)
        client.send(get("/also-at-once"))
        assert await client.receives_nothing()
        gate.open.set()
        assert [(await client.answer())[1] for _ in range(3)] == [b"/gate", b"/at-once", b"/also-at-once"]


async def test_a_large_answer_that_is_known_at_once_leaves_in_pieces() -> None:
    def large(_: IncomingRequest) -> Response:
        return Response(200, b"text/plain", [b"x" * 65536] * 64)

    async with serving(large) as served, await served.connect() as client:
        client.send(get() * 2)
        assert [len((await client.answer())[1]) for _ in range(2)] == [64 * 65536] * 2
