"""What many are answered alike is compressed once for all of them, and kept while it is asked for."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator, Sequence

import pytest

from clusterregistry.apiserver.filters.compression import EditionCache
from clusterregistry.apiserver.http.response import Edition, LazyBody

SMALL, LARGE = 200 * 1024, 1024 * 1024


class Bodies:
    """Bodies that count how often they are made."""

    def __init__(self, editions: EditionCache) -> None:
        self._editions = editions
        self.made = 0

    async def compressed(self, edition: Edition | None, *, size: int = SMALL) -> Sequence[bytes]:
        return await self._editions.compressed(self.body(edition, size=size), size=size)

    def body(self, edition: Edition | None, *, size: int) -> LazyBody:
        def pieces() -> Iterator[bytes]:
            self.made += 1
            yield from [str(edition).encode(), b"x" * size]

        return LazyBody(pieces, length=size, edition=edition)


@pytest.fixture
def bodies() -> Bodies:
    return Bodies(EditionCache())


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_it_is_kept_when_it_is_asked_for_again(bodies: Bodies, size: int) -> None:
    answers = [await bodies.compressed(Edition("a", 1), size=size) for _ in range(5)]
    assert bodies.made == 2
    assert {gzip.decompress(b"".join(answer)) for answer in answers} == {str(Edition("a", 1)).encode() + b"x" * size}


async def test_another_revision_is_another_body(bodies: Bodies) -> None:
    for revision in (1, 1, 1, 2, 2, 2):
        answer = await bodies.compressed(Edition("a", revision))
        assert gzip.decompress(b"".join(answer)).startswith(str(Edition("a", revision)).encode())
    assert bodies.made == 4


async def test_where_each_is_another_one_nothing_is_kept(bodies: Bodies) -> None:
    for revision in (1, 2, 1, 2):
        await bodies.compressed(Edition("a", revision))
    assert bodies.made == 4


async def test_a_body_without_an_edition_is_compressed_each_time(bodies: Bodies) -> None:
    for _ in range(3):
        await bodies.compressed(None)
    assert bodies.made == 3


async def test_concurrent_requests_share_one_compression(bodies: Bodies) -> None:
    answers = await asyncio.gather(*(bodies.compressed(Edition("a", 1), size=LARGE) for _ in range(4)))
    assert bodies.made == 1
    assert all(answer is answers[0] for answer in answers)


async def test_a_cancelled_request_does_not_cancel_the_compression(bodies: Bodies) -> None:
    leaving, staying = (asyncio.create_task(bodies.compressed(Edition("a", 1), size=LARGE)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying
    assert bodies.made == 1


async def test_the_cache_is_bounded() -> None:
    one = len(b"".join(await Bodies(EditionCache()).compressed(Edition("a", 1))))
    bodies = Bodies(EditionCache(max_bytes=2 * one))
    for name in "abc" * 3:
        await bodies.compressed(Edition(name, 1))
    made = bodies.made
    await bodies.compressed(Edition("c", 1))
    assert bodies.made == made
    await bodies.compressed(Edition("a", 1))
    assert bodies.made == made + 1
