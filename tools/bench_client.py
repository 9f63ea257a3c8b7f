"""What HTTP libraries cost a client of a Kubernetes-style API, measured against our own server over TLS.

    python -m venv /tmp/candidates && /tmp/candidates/bin/pip install aiohttp httpx niquests httptools uvloop
    python -m tools.bench_client --python /tmp/candidates/bin/python
    python -m tools.bench_client --only aiohttp,ours --rounds 1

Each candidate runs in a process of its own. Requests: GETs of one small object over one kept connection, one after the
other, and sixteen at a time over sixteen connections. Watches: so many at once, each on a connection of its own; then
one object changes again and again, and every watch receives every event. CPU is the client's alone, memory is the
resident memory that the watches add. Import is the CPU time of importing the library. All figures are the best of the
rounds, since anything else that runs only makes them worse.

The objects are changed by the standard library: a candidate's process has no other client that would count too.
``ours`` is ``clusterregistry.client`` as a whole, on aiohttp, in the project's own environment: with deadlines, limits,
retries and credentials that are read again. ``httptools`` is the least that a client can do on that parser.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tools import live_server

CANDIDATES = ("aiohttp", "httpx", "niquests", "httptools", "ours")
LOOPS = ("asyncio", "uvloop")
CALLERS = 16
_PATH = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"
_NAME = "bench"
_AUTHORIZATION = {"Authorization": f"Bearer {live_server.ADMIN_TOKEN}"}
_PATIENCE = 300.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one process measures."""

    candidate: str
    loop: str
    url: str
    ca_file: str
    requests: int
    watches: int
    events: int


class Candidate(Protocol):
    """One HTTP library behind the two calls that are measured."""

    async def get(self, url: str) -> bytes: ...

    def lines(self, url: str) -> AsyncIterator[bytes]: ...


Maker = Callable[[ssl.SSLContext, int], Any]


@asynccontextmanager
async def with_aiohttp(tls: ssl.SSLContext, connections: int) -> AsyncIterator[Candidate]:
    import aiohttp  # noqa: PLC0415 - each process imports the library that it measures

    connector = aiohttp.TCPConnector(ssl=tls, limit=connections)
    async with aiohttp.ClientSession(connector=connector, headers=_AUTHORIZATION, auto_decompress=False) as session:

        class Made:
            async def get(self, url: str) -> bytes:
                async with session.get(url, allow_redirects=False) as response:
                    return await response.read()

            async def lines(self, url: str) -> AsyncIterator[bytes]:
                async with session.get(url, timeout=aiohttp.ClientTimeout(total=None)) as response:
                    async for line in response.content:
                        yield line

        yield Made()


@asynccontextmanager
async def with_httpx(tls: ssl.SSLContext, connections: int) -> AsyncIterator[Candidate]:
    import httpx  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    async with httpx.AsyncClient(verify=tls, limits=limits, headers=_AUTHORIZATION, timeout=_PATIENCE) as client:

        class Made:
            async def get(self, url: str) -> bytes:
                content: bytes = (await client.get(url)).content
                return content

            async def lines(self, url: str) -> AsyncIterator[bytes]:
                async with client.stream("GET", url) as response:
                    async for line in response.aiter_lines():
                        yield line.encode()

        yield Made()


@asynccontextmanager
async def with_niquests(_: ssl.SSLContext, connections: int) -> AsyncIterator[Candidate]:
    import niquests  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    async with niquests.AsyncSession(pool_connections=4, pool_maxsize=connections, multiplexed=False) as session:
        trust = os.environ["BENCH_CA_FILE"]
        session.headers.update(_AUTHORIZATION)

        class Made:
            async def get(self, url: str) -> bytes:
                content: bytes = (await session.get(url, verify=trust)).content
                return content

            async def lines(self, url: str) -> AsyncIterator[bytes]:
                response = await session.get(url, stream=True, timeout=_PATIENCE, verify=trust)
                async for line in response.iter_lines():
                    yield line

        yield Made()


class _Reader(asyncio.Protocol):
    """One connection on httptools: a response after the other, pieces of a body as they come."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.transport: Any = None

    def send(self, path: str) -> None:
        import httptools  # noqa: PLC0415

        self._parser = httptools.HttpResponseParser(self)
        token = _AUTHORIZATION["Authorization"]
        self.transport.write(f"GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: {token}\r\n\r\n".encode())

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self.pieces.put_nowait(body)

    def on_message_complete(self) -> None:
        self.pieces.put_nowait(None)


@asynccontextmanager
async def with_httptools(tls: ssl.SSLContext, _: int) -> AsyncIterator[Candidate]:
    idle: list[_Reader] = []
    made: list[_Reader] = []

    async def connection(url: str) -> _Reader:
        if idle:
            return idle.pop()
        host, _, port = url.removeprefix("https://").partition("/")[0].partition(":")
        loop = asyncio.get_running_loop()
        _, reader = await loop.create_connection(_Reader, host, int(port), ssl=tls)
        made.append(reader)
        return reader

    class Made:
        async def get(self, url: str) -> bytes:
            reader = await connection(url)
            reader.send("/" + url.split("/", 3)[3])
            body = b""
            while (piece := await reader.pieces.get()) is not None:
                body += piece
            idle.append(reader)
            return body

        async def lines(self, url: str) -> AsyncIterator[bytes]:
            reader = await connection(url)
            reader.send("/" + url.split("/", 3)[3])
            begun = b""
            while (piece := await reader.pieces.get()) is not None:
                *whole, begun = (begun + piece).split(b"\n")
                for line in whole:
                    yield line

    yield Made()
    for reader in made:
        reader.transport.abort()


@asynccontextmanager
async def with_ours(_: ssl.SSLContext, __: int) -> AsyncIterator[Candidate]:
    from clusterregistry.client.rest import Call, Client  # noqa: PLC0415
    from clusterregistry.client.rest_config import Pem, RestConfig  # noqa: PLC0415

    url, ca_file = os.environ["BENCH_URL"], Path(os.environ["BENCH_CA_FILE"])
    config = RestConfig(
        server=url,
        user_agent="bench",
        certificate_authority=Pem(file=ca_file),
        token=live_server.ADMIN_TOKEN,
    )
    async with Client(config) as client:

        class Made:
            async def get(self, url_: str) -> bytes:
                return (await client.raw(Call("GET", url_.removeprefix(url)))).body

            async def lines(self, url_: str) -> AsyncIterator[bytes]:
                begun = b""
                async with client.stream(Call("GET", url_.removeprefix(url)), silence=_PATIENCE) as stream:
                    async for piece in stream.pieces():
                        *whole, begun = (begun + piece).split(b"\n")
                        for line in whole:
                            yield line

        yield Made()


MAKERS: dict[str, Maker] = {
    "aiohttp": with_aiohttp,
    "httpx": with_httpx,
    "niquests": with_niquests,
    "httptools": with_httptools,
    "ours": with_ours,
}


async def _gets(candidate: Candidate, url: str, *, requests: int, callers: int) -> float:
    """CPU seconds of one request."""

    async def caller() -> None:
        for _ in range(requests // callers):
            await candidate.get(url)

    await asyncio.gather(*(candidate.get(url) for _ in range(callers)))  # the connections, and their handshakes
    begun = time.process_time()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return (time.process_time() - begun) / (requests // callers * callers)


async def _watches(candidate: Candidate, plan: Plan) -> dict[str, float]:
    url = f"{plan.url}{_PATH}?watch=true&resourceVersion=0&timeoutSeconds=600"
    received = [0] * plan.watches

    async def watcher(number: int) -> None:
        async for line in candidate.lines(url):
            received[number] += bool(line.strip())

    memory, begun = _resident(), time.process_time()
    tasks = []
    for number in range(plan.watches):
        tasks.append(asyncio.create_task(watcher(number)))
        if number % 50 == 49:  # noqa: PLR2004 - a pile of handshakes at once is not what is measured
            await _until(lambda: all(received[: len(tasks)]), tasks)
    await _until(lambda: all(received), tasks)
    opened, grown = time.process_time() - begun, _resident() - memory
    seen, begun = sum(received), time.process_time()
    for number in range(plan.events):
        await asyncio.to_thread(_change, plan, number)
    await _until(lambda: sum(received) - seen >= plan.events * plan.watches, tasks)
    spent = time.process_time() - begun
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "open_ms": opened / plan.watches * 1e3,
        "kib_per_watch": grown / plan.watches / 1024,
        "us_per_event": spent / (plan.events * plan.watches) * 1e6,
    }


async def _until(holds: Callable[[], bool], tasks: Sequence[asyncio.Task[None]]) -> None:
    async with asyncio.timeout(_PATIENCE):
        while not holds():
            for task in tasks:
                if task.done():
                    raise RuntimeError(f"a watch ended: {task.exception()!r}")
            await asyncio.sleep(0.02)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _change(plan: Plan, number: int) -> None:
    body = {"metadata": {"annotations": {"number": str(number)}}}
    _call(plan, "PATCH", f"/{_NAME}", body, content_type="application/merge-patch+json")


def _call(plan: Plan, method: str, path: str, body: Mapping[str, Any], *, content_type: str = "") -> None:
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{plan.url}{_PATH}{path}",
        method=method,
        data=json.dumps(body).encode(),
        headers={**_AUTHORIZATION, "Content-Type": content_type or "application/json"},
    )
    trust = ssl.create_default_context(cafile=plan.ca_file)
    with urllib.request.urlopen(request, context=trust, timeout=60) as response:  # noqa: S310
        response.read()


async def _measure(plan: Plan) -> dict[str, float]:
    tls = ssl.create_default_context(cafile=plan.ca_file)
    begun = time.process_time()
    async with MAKERS[plan.candidate](tls, max(plan.watches, CALLERS)) as candidate:
        imported = time.process_time() - begun
        url = f"{plan.url}{_PATH}/{_NAME}"
        one = await _gets(candidate, url, requests=plan.requests, callers=1)
        many = await _gets(candidate, url, requests=plan.requests, callers=CALLERS)
        watches = await _watches(candidate, plan)
    return {"import_ms": imported * 1e3, "us_per_get": one * 1e6, "us_per_get_of_16": many * 1e6, **watches}


def _work(plan: Plan) -> None:
    """The process of one candidate: prints its figures as JSON."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard > 0 else soft, hard))
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if plan.loop == "uvloop":
        import uvloop  # noqa: PLC0415

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        print(json.dumps(runner.run(_measure(plan))))


def _run(plan: Plan, python: str) -> dict[str, float]:
    command = [python if plan.candidate != "ours" else sys.executable, "-m", "tools.bench_client"]
    done = subprocess.run(
        [*command, "--work", json.dumps(vars(plan))],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "BENCH_CA_FILE": plan.ca_file, "BENCH_URL": plan.url},
        timeout=_PATIENCE * 2,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _best(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: min(figures[name] for figures in rounds) for name in rounds[0]}


def _parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures HTTP clients against our server.")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the candidates")
    parser.add_argument("--only", default=",".join(CANDIDATES))
    parser.add_argument("--loops", default=",".join(LOOPS))
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--watches", type=int, default=1000)
    parser.add_argument("--events", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parse(arguments)
    if chosen.work:
        _work(Plan(**json.loads(chosen.work)))
        return 0
    with tempfile.TemporaryDirectory() as directory, live_server.running(Path(directory)) as server:
        _table(chosen, server)
    return 0


def _table(chosen: argparse.Namespace, server: live_server.LiveServer) -> None:
    plans = [
        Plan(
            candidate=candidate,
            loop=loop,
            url=server.url,
            ca_file=str(server.ca_file),
            requests=chosen.requests,
            watches=chosen.watches,
            events=chosen.events,
        )
        for candidate in chosen.only.split(",")
        for loop in chosen.loops.split(",")
    ]
    api_version = _PATH.removeprefix("/apis/").removesuffix("/clusters")
    _call(plans[0], "POST", "", {"apiVersion": api_version, "kind": "Cluster", "metadata": {"name": _NAME}})
    print("| client | import ms | us a GET | us a GET, 16 at a time | ms a watch opened | KiB a watch | us an event |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for plan in plans:
        try:
            figures = _best([_run(plan, chosen.python) for _ in range(chosen.rounds)])
        except (subprocess.SubprocessError, ValueError) as error:
            print(f"| {plan.candidate}, {plan.loop} | failed: {error} |", file=sys.stderr)
            continue
        shown = " | ".join(f"{value:.1f}" if value < 10 else f"{value:.0f}" for value in figures.values())  # noqa: PLR2004
        print(f"| {plan.candidate}, {plan.loop} | {shown} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
