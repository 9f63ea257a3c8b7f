"""What a client does with servers that fail, and with what they send."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.client import errors
from clusterregistry.client.rest import Call, Client
from clusterregistry.client.rest_config import Impersonation, Pem, RestConfig
from clusterregistry.client.retry import ONCE
from tests.client.conftest import Pauses
from tests.client.hostile_servers import (
    AGENT,
    CHUNKED,
    HostileServer,
    Received,
    Writer,
    chunk,
    connections_ended,
    response,
    status,
)
from tests.remote_servers import Authority
from tools.ports import free_port

GET, POST, PUT = Call("GET", "/it"), Call("POST", "/it", body={"a": 1}), Call("PUT", "/it", body={"a": 1})
DELETE = Call("DELETE", "/it")


async def test_requests_share_a_connection_and_name_the_user_agent(server: HostileServer, hostile: Client) -> None:
    for _ in range(3):
        await hostile.call(GET)
    assert server.connections == 1
    assert {received.header("user-agent") for received in server.received} == {AGENT}
    assert server.received[0].header("accept-encoding") == "identity"


async def test_an_exchange_returns_any_response_as_it_is_and_sends_once(server: HostileServer, hostile: Client) -> None:
    server.answers = [
        response(b"\xff", status=302, location="/elsewhere"),
        response(status=401),
        response("no", status=503, retry_after="1"),
        b'HTTP/1.1 304 Not Modified\r\nWarning: 299 - "\xc3\xa4"\r\nwarning: two\r\n\r\n',
    ]
    found = [await hostile.exchange(GET) for _ in range(4)]
    assert [(each.status, each.body) for each in found] == [(302, b"\xff"), (401, b"{}"), (503, b"no"), (304, b"")]
    assert (found[0].headers["location"], found[2].headers["retry-after"]) == ("/elsewhere", "1")
    assert [value for name, value in found[3].fields if name.lower() == "warning"] == ['299 - "ä"', "two"]
    assert len(server.received) == 4


async def test_an_exchange_whose_connection_ends_is_not_sent_again(server: HostileServer, hostile: Client) -> None:
    async def cut(_: Received, writer: Writer) -> None:
        writer.transport.abort()

    server.handler = cut
    with pytest.raises(errors.DisconnectedError):
        await hostile.exchange(GET)
    assert len(server.received) == 1


async def test_header_fields_of_a_call_replace_those_of_the_client(server: HostileServer) -> None:
    fields = [
        ("Authorization", "Basic eA=="),
        ("X-Group", "a"),
        ("x-GROUP", "b"),
        ("Accept", None),
        ("user-agent", None),
    ]
    fields += [("accept-encoding", None), ("Content-Type", None)]
    async with Client(server.config(token="secret")) as client:
        await client.exchange(Call("POST", "/it", body=b"\xff{", fields=fields))
        await client.call(Call("POST", "/it", body={}, fields=[("Content-Type", "text/plain")]))
    raw, usual = server.received
    assert [each for each in raw.headers if each[0] != "host"] == [
        ("authorization", "Basic eA=="), ("x-group", "a"), ("x-group", "b"), ("content-length", "2"),
    ]  # fmt: skip
    assert raw.body == b"\xff{"
    assert usual.all("authorization") == ["Bearer secret"]
    assert (usual.all("content-type"), usual.header("accept")) == (["text/plain"], "application/json")


async def test_a_closed_client_leaves_no_connection_open(server: HostileServer) -> None:
    async def answer_and_wait(_: Received, writer: Writer) -> None:
        writer.write(response(connection="close"))

    server.handler = answer_and_wait
    async with Client(server.config()) as client:
        await client.exchange(GET)
        sockets = set(client._transport._sockets)
    assert [each.fileno() for each in sockets] == [-1]


async def test_a_large_body_is_sent_whole(server: HostileServer, hostile: Client) -> None:
    body = b"x" * (3 << 20)
    await hostile.exchange(Call("PUT", "/it", body=body, content_type="text/plain"))
    assert server.received[0].body == body
    assert (server.received[0].all("content-length"), server.received[0].all("content-type")) == (
        [str(len(body))], ["text/plain"],
    )  # fmt: skip


async def test_a_stream_of_any_status_is_read_piece_by_piece(server: HostileServer, hostile: Client) -> None:
    server.answers = [response("no", status=404)]
    async with hostile.exchange_stream(GET, silence=10) as stream:
        assert (stream.status, await stream.body(10)) == (404, b"no")


async def test_a_redirect_is_never_followed(server: HostileServer, hostile: Client) -> None:
    server.answers = [response(status=302, location="https://elsewhere.example.com/login")]
    with pytest.raises(errors.RedirectError, match=r"elsewhere\.example\.com") as raised:
        await hostile.call(GET)
    assert (raised.value.status, raised.value.outcome_unknown, len(server.received)) == (302, False, 1)


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_beyond_the_limit_is_not_read(server: HostileServer, hostile: Client, *, announced: bool) -> None:
    written = 0

    async def endless(_: Received, writer: Writer) -> None:
        nonlocal written
        head = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n" if announced else CHUNKED
        writer.write(head)
        piece = b"x" * 65536
        while True:
            writer.write(piece if announced else chunk(piece))
            await writer.drain()
            await asyncio.sleep(0)  # a drain that need not wait does not let others run
            written += len(piece)

    server.handler = endless
    with pytest.raises(errors.ResponseTooLargeError):
        await hostile.call(Call("GET", "/it", limit=1 << 20))
    assert written < 16 << 20  # what fits into the buffers of two sockets


async def test_a_body_that_is_cut_is_a_disconnection(server: HostileServer, pauses: Pauses) -> None:
    server.answers = [response(b"{}", content_length="50")]

    async def cut(_: Received, writer: Writer) -> None:
        writer.write(server.answers.pop())
        await writer.drain()
        writer.close()

    server.handler = cut
    async with Client(server.config(), retry=ONCE, sleep=pauses) as client:
        with pytest.raises(errors.DisconnectedError) as raised:
            await client.call(GET)
    assert raised.value.outcome_unknown


@pytest.mark.parametrize("call", [POST, PUT, DELETE, Call("PATCH", "/it", body={})], ids=lambda call: call.method)
@pytest.mark.parametrize("kept", [True, False])
async def test_a_write_is_not_repeated_after_the_connection_was_cut(
    server: HostileServer, hostile: Client, call: Call, *, kept: bool
) -> None:
    if kept:
        await hostile.call(GET)  # its connection is used again

    async def hang_up(_: Received, writer: Writer) -> None:
        writer.transport.abort()

    server.handler = hang_up
    with pytest.raises(errors.DisconnectedError) as raised:
        await hostile.call(call)
    assert raised.value.outcome_unknown
    assert [received.method for received in server.received][kept:] == [call.method]


async def test_a_read_is_repeated_after_the_connection_was_cut(
    server: HostileServer, hostile: Client, pauses: Pauses
) -> None:
    async def hang_up_twice(received: Received, writer: Writer) -> None:
        if len(server.received) <= 2:
            writer.transport.abort()
        else:
            await server._answer(received, writer)

    server.handler = hang_up_twice
    assert await hostile.call(GET) == {"path": "/it"}
    assert (len(server.received), len(pauses.seconds)) == (3, 2)


async def test_a_call_that_is_declared_repeatable_is_repeated(server: HostileServer, hostile: Client) -> None:
    """A review is a POST that changes nothing."""
    server.answers = [status(503, "ServiceUnavailable"), response()]
    await hostile.call(Call("POST", "/review", body={}, repeatable=True))
    assert len(server.received) == 2


async def test_a_server_that_stays_silent_leaves_the_outcome_of_a_write_unknown(server: HostileServer) -> None:
    async def silent(_: Received, __: Writer) -> None:
        await asyncio.sleep(60)

    server.handler = silent
    async with Client(server.config(timeout=0.3)) as client:
        with pytest.raises(errors.RequestTimeoutError) as raised:
            await client.call(POST)
    assert raised.value.outcome_unknown


async def test_a_server_that_does_not_answer_the_handshake_was_sent_nothing(tmp_path: Path) -> None:
    async with HostileServer(tmp_path / "plain", tls=False) as plain:  # waits for a request that never comes
        config = plain.config(server=f"https://127.0.0.1:{plain.port}", timeout=0.3)
        async with Client(config) as client:
            with pytest.raises((errors.ConnectTimeoutError, errors.ConnectError)) as raised:
                await client.call(POST)
    assert not raised.value.outcome_unknown


async def test_where_nothing_listens_any_request_is_repeated(tmp_path: Path, pauses: Pauses) -> None:
    authority = Authority(tmp_path)
    server = f"https://127.0.0.1:{free_port()}"
    config = RestConfig(server=server, user_agent=AGENT, certificate_authority=Pem(data=authority.pem))
    async with Client(config, sleep=pauses) as client:
        with pytest.raises(errors.UnreachableError) as raised:
            await client.call(POST)
    assert not raised.value.outcome_unknown
    assert isinstance(raised.value.cause, ConnectionRefusedError)
    assert str(raised.value).endswith(f"{server.removeprefix('https://')}: Connection refused")
    assert len(pauses.seconds) == 4
    assert pauses.seconds == sorted(pauses.seconds)


@pytest.mark.parametrize("call", [GET, POST, DELETE], ids=lambda call: call.method)
@pytest.mark.parametrize("code", [429, 503])
async def test_the_time_that_the_server_names_is_waited(
    server: HostileServer, hostile: Client, pauses: Pauses, *, call: Call, code: int
) -> None:
    server.answers = [status(code, "TooManyRequests", retryAfterSeconds=7), response()]
    await hostile.call(call)
    assert pauses.seconds == [7.0]
    assert len(server.received) == 2


@pytest.mark.parametrize(
    ("code", "reason", "details"),
    [
        (503, "ServiceUnavailable", {}),
        (500, "ServerTimeout", {"retryAfterSeconds": 1}),
        (504, "Timeout", {"retryAfterSeconds": 1}),
        (500, "InternalError", {}),
    ],
)
async def test_a_write_is_not_repeated_after_a_failure_behind_the_filters(
    server: HostileServer, hostile: Client, *, code: int, reason: str, details: dict[str, Any]
) -> None:
    server.answers = [status(code, reason, **details)]
    with pytest.raises(errors.APIStatusError) as raised:
        await hostile.call(POST)
    assert raised.value.outcome_unknown
    assert len(server.received) == 1


async def test_no_pause_goes_beyond_the_timeout_of_the_call(server: HostileServer) -> None:
    server.answers = [status(429, "TooManyRequests", retryAfterSeconds=50)]
    async with Client(server.config(timeout=5)) as client:
        with pytest.raises(errors.TooManyRequestsError) as raised:
            await client.call(GET)  # at once, since there would be no time for another attempt
    assert raised.value.retry_after == 50


async def test_a_longer_time_than_the_policy_allows_is_left_to_the_caller(
    server: HostileServer, pauses: Pauses
) -> None:
    server.answers = [status(429, "TooManyRequests", retryAfterSeconds=3600)]
    async with Client(server.config(timeout=1e6), sleep=pauses) as client:
        with pytest.raises(errors.TooManyRequestsError):
            await client.call(GET)
    assert pauses.seconds == []


async def test_the_server_certificate_must_be_of_a_trusted_authority(server: HostileServer, tmp_path: Path) -> None:
    other = Authority(tmp_path)
    async with Client(server.config(certificate_authority=Pem(data=other.pem)), sleep=Pauses()) as client:
        with pytest.raises(errors.UntrustedCertificateError) as raised:
            await client.call(POST)
    assert not raised.value.outcome_unknown
    assert isinstance(raised.value.cause, ssl.SSLCertVerificationError)
    assert server.received == []


async def test_a_server_can_be_trusted_by_its_own_certificate(server: HostileServer, tmp_path: Path) -> None:
    own = (tmp_path / "server" / "serving.crt").read_bytes()
    async with Client(server.config(certificate_authority=Pem(data=own))) as client:
        assert (await client.exchange(GET)).status == 200


async def test_the_server_certificate_must_have_the_right_name(tmp_path: Path) -> None:
    async with HostileServer(tmp_path / "named", names=("other.example.com",)) as named:
        async with Client(named.config()) as client:
            with pytest.raises(errors.CertificateNameError):
                await client.call(GET)
        async with Client(named.config(tls_server_name="other.example.com")) as client:
            await client.call(GET)
        insecure = named.config(certificate_authority=Pem(), insecure_skip_tls_verify=True)
        async with Client(insecure) as client:
            await client.call(GET)


@pytest.mark.parametrize("answer", [b"not HTTP at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nbroken header\r\n\r\n"])
async def test_what_is_not_http_is_no_response(server: HostileServer, hostile: Client, answer: bytes) -> None:
    server.answers = [answer]
    with pytest.raises(errors.MalformedResponseError):
        await hostile.call(GET)


@pytest.mark.parametrize(
    "body", [b"<html>", b"[1]", b'"text"', b'{"a":' * 900 + b"1" + b"}" * 900, b"", b"\xff"], ids=range(6)
)
async def test_what_is_no_json_object_of_a_usual_depth_is_malformed(
    server: HostileServer, hostile: Client, body: bytes
) -> None:
    server.answers = [response(body)]
    with pytest.raises(errors.MalformedResponseError):
        await hostile.call(GET)


async def test_a_failure_without_a_status_has_its_text_on_one_line(server: HostileServer, hostile: Client) -> None:
    server.answers = [response(b"upstream\n\x1b[31mgone", status=404)]
    with pytest.raises(errors.NotFoundError, match=r"^upstream \[31mgone$") as raised:
        await hostile.call(GET)
    assert raised.value.excerpt.body == b"upstream\n\x1b[31mgone"


async def test_too_many_bytes_of_headers_are_refused(server: HostileServer, pauses: Pauses) -> None:
    server.answers = [response(x="y" * 200_000)]
    async with Client(server.config(), retry=ONCE, sleep=pauses) as client:
        with pytest.raises(errors.TransportError):
            await client.call(GET)


async def test_a_call_goes_through_the_proxy_of_the_configuration(server: HostileServer) -> None:
    asked: list[str] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head.splitlines()[0])
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", server.port)
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

    port = free_port()
    async with await asyncio.start_server(tunnel, "127.0.0.1", port):
        config = server.config(proxy_url=f"http://127.0.0.1:{port}", tls_server_name="127.0.0.1")
        async with Client(config) as client:
            await client.call(GET)
        await asyncio.sleep(0.05)  # the ends of both halves of the tunnel
    assert asked == [f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"]


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
    writer.close()


async def test_a_proxy_that_refuses_is_named_as_the_cause(server: HostileServer, tmp_path: Path) -> None:
    async with HostileServer(tmp_path / "proxy", tls=False) as proxy:
        proxy.answers = [response(b"", status=407)]
        async with Client(server.config(proxy_url=proxy.url)) as client:
            with pytest.raises(errors.ProxyError, match="407"):
                await client.call(POST)


async def test_a_path_and_a_query_of_the_server_url_are_kept(server: HostileServer) -> None:
    async with Client(server.config(server=f"{server.url}/clusters/c1/?a=b")) as client:
        await client.call(Call("GET", "/it", query={"c": "d e", "none": None, "yes": True}))
        await client.call(Call("POST", "", body={}))
    assert server.received[0].target == "/clusters/c1/it?c=d%20e&yes=true&a=b"
    assert server.received[1].target == "/clusters/c1?a=b"


async def test_impersonation_is_asked_for_with_every_group(server: HostileServer) -> None:
    extra = {"example.com/Scope": ("one", "two")}
    impersonation = Impersonation(user="jane", uid="7", groups=("a", "b"), extra=extra)
    async with Client(server.config(impersonation=impersonation)) as client:
        await client.call(GET)
    (received,) = server.received
    assert received.header("impersonate-user") == "jane"
    assert received.header("impersonate-uid") == "7"
    assert received.all("impersonate-group") == ["a", "b"]
    assert received.all("impersonate-extra-example.com%2fscope") == ["one", "two"]


async def test_no_credential_is_sent_without_tls(tmp_path: Path) -> None:
    async with HostileServer(tmp_path / "plain", tls=False) as plain:
        async with Client(plain.config(token="secret")) as client:
            assert await client.call(GET) == {"path": "/it"}
        assert plain.received[0].header("authorization") is None


async def test_a_call_after_the_close_opens_new_connections_until_the_next_close(server: HostileServer) -> None:
    client = Client(server.config())
    await client.call(GET)
    await client.close()
    await client.close()
    await client.call(GET)
    await client.close()
    assert server.connections == 2
    await connections_ended()


async def test_a_call_that_is_cancelled_leaves_its_connection(server: HostileServer, hostile: Client) -> None:
    arrived = asyncio.Event()

    async def silent(_: Received, __: Writer) -> None:
        arrived.set()
        await asyncio.sleep(60)

    server.handler = silent
    task = asyncio.create_task(hostile.call(GET))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.handler = server._answer
    assert await hostile.call(GET) == {"path": "/it"}
    assert server.connections == 2


async def test_a_body_is_sent_as_json_with_its_length(server: HostileServer, hostile: Client) -> None:
    await hostile.call(Call("POST", "/it", body={"text": "ä"}))
    (received,) = server.received
    assert (received.json, received.header("content-type")) == ({"text": "ä"}, "application/json")
    assert json.loads(received.body) == {"text": "ä"}


async def test_connections_end_with_the_client(server: HostileServer) -> None:
    async with Client(server.config()) as client:
        await client.call(GET)
    await server.stop()
    await connections_ended()
