"""Whatever a peer sends, and however it is cut: each call comes to an end, and so does the connection."""

import asyncio
import random

import pytest

from clusterregistry.apiserver.storage.etcd.http2 import frames
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError, framed
from tests.apiserver.storage.etcd.http2.peers import HEAD, TRAILERS, Peer, call, data, serving

STREAMS = (1, 3, 5, 7)
FLAGS = (0, frames.END_STREAM, frames.END_HEADERS, frames.PADDED, frames.WITH_PRIORITY, 0xFF)


def sensible(peer: Peer, chance: random.Random) -> bytes:
    """A frame that HTTP/2 allows, at some time or other."""
    stream, kind = chance.choice(STREAMS), chance.randrange(8)
    made = (
        peer.headers(stream, HEAD),
        peer.headers(stream, TRAILERS, flags=frames.END_HEADERS | frames.END_STREAM),
        data(stream, framed(b"part of a message")[: chance.choice((2, 10, 22))]),
        frames.window_update(chance.choice((0, stream)), chance.randrange(1, 100_000)),
        frames.settings({frames.INITIAL_WINDOW_SIZE: chance.randrange(200_000)}),
        frames.settings({frames.MAX_CONCURRENT_STREAMS: chance.randrange(8)}),
        frames.ping(b"8 bytes!"),
        frames.reset(stream, chance.choice((frames.REFUSED_STREAM, frames.CANCEL))),
    )
    return made[kind]


def senseless(chance: random.Random) -> bytes:
    content = chance.choice((b"", bytes(4), bytes(8), chance.randbytes(20)))
    kind, stream = chance.randrange(12), chance.choice((0, 2, *STREAMS, 99))
    return frames.head(len(content), kind=kind, flags=chance.choice(FLAGS), stream=stream) + content


@pytest.mark.parametrize("seed", range(25))
async def test_every_call_comes_to_an_end(seed: int) -> None:
    chance = random.Random(seed)

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.frame(frames.HEADERS)
        likely = chance.choice((0.0, 0.1, 0.5))
        sent = b"".join(senseless(chance) if chance.random() < likely else sensible(peer, chance) for _ in range(40))
        while sent:
            size = chance.randrange(1, 100)
            peer.send(sent[:size])
            sent = sent[size:]
            await asyncio.sleep(0)
        peer.end()

    async with serving(script) as channel:
        sizes = (0, 100, 70_000, 200_000)
        outcomes = await asyncio.gather(*(call(channel, bytes(size)) for size in sizes), return_exceptions=True)
        assert all(isinstance(outcome, bytes | RpcError) for outcome in outcomes), outcomes
        assert channel._connection is not None
        await channel._connection.lost.wait()
