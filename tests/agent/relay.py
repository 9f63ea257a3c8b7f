"""Relays connections between a port on loopback and a Unix socket, in both directions.

A path in the file system is the same in all network namespaces. So a process in a namespace that has nothing but its
loopback can reach one server outside, and nothing outside can reach anything inside.

    python -m tests.agent.relay to-socket PORT SOCKET       in the namespace: listens on 127.0.0.1:PORT
    python -m tests.agent.relay from-socket SOCKET PORT     outside: connects to 127.0.0.1:PORT
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LOOPBACK = "127.0.0.1"


async def relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connect: Callable[[], Awaitable[Streams]]
) -> None:
    """One connection, until either side ends it."""
    try:
        others, other = await connect()
    except OSError:
        writer.close()
        return
    ways = [asyncio.create_task(_copy(reader, other)), asyncio.create_task(_copy(others, writer))]
    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    for each in (writer, other):
        each.close()
    await asyncio.gather(*ways, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


async def run(way: str, first: str, second: str) -> None:
    if way == "to-socket":
        server = await asyncio.start_server(
            lambda reader, writer: relay(reader, writer, lambda: asyncio.open_unix_connection(second)),
            LOOPBACK,
            int(first),
        )
    else:
        server = await asyncio.start_unix_server(
            lambda reader, writer: relay(reader, writer, lambda: asyncio.open_connection(LOOPBACK, int(second))), first
        )
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:4]))
