"""What is certain about a write without an answer, and what a store leaves behind."""

import asyncio
import gc
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.etcd import client, errors, messages, watch_loop, writer_lease
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError, with_prefix
from clusterregistry.apiserver.storage.etcd.key_range import INTERNAL
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from clusterregistry.apiserver.storage.etcd.store import EtcdStorage
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.etcd.http2.peers import HEAD, Peer, data, serving
from tests.apiserver.storage.etcd_engine import eventually, settings_for
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, NEEDS_STURDY, EtcdCluster, Settings
from tests.apiserver.storage.recording import keys

pytestmark = [NEEDS_ETCD, pytest.mark.usefixtures("impatient_writes")]

_numbers = count()


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), Settings(killed=True)) as etcd:
        yield etcd


def count_transactions(store: EtcdStorage, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Notes each write of an object that is sent to a member."""
    sent: list[Any] = []
    for member in store._client._members:
        call = member.call

        async def noted(name: str, request: Any, *, call: Any = call, **named: Any) -> Any:
            if name == "txn" and isinstance(request, bytes) and INTERNAL.encode() not in _first_key(request):
                sent.append(request)
            return await call(name, request, **named)

        monkeypatch.setattr(member, "call", noted)
    return sent


async def test_a_write_whose_answer_is_lost_is_sent_once_and_not_called_done(
    etcd: EtcdCluster, store: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (member,) = etcd.members
    sent = count_transactions(store, monkeypatch)
    created = await store.create("/a", b"0")
    sent.clear()
    member.pause()
    writes = [store.update("/a", b"1", expected=created), store.create("/b", b""), store.delete("/a", expected=created)]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    member.resume()
    for outcome in outcomes:
        assert isinstance(outcome, StorageUnavailable)
        assert "whether the write was done is not known" in str(outcome)
    await eventually(lambda: not store.problem())
    await settled(store)
    assert len(sent) == 3
    # etcd may have executed them before it got the reset; but none of them twice.
    events = await store.history("/", after=created)
    assert len(events) == len({event.key for event in events})


STRANGE: dict[str, tuple[list[tuple[str, str]], bytes]] = {
    "no status": (HEAD, with_prefix(b"")),
    "compressed": (HEAD, b"\x01" + with_prefix(b"")[1:]),
    "a proxy's error": ([(":status", "500")], b""),
    "an unknown error": ([*HEAD, ("grpc-status", "2")], b""),
    "an internal error": ([*HEAD, ("grpc-status", "13")], b""),
}


@pytest.mark.parametrize(("head", "content"), STRANGE.values(), ids=STRANGE)
async def test_a_write_with_a_strange_response_is_sent_once_and_its_outcome_unknown(
    head: list[tuple[str, str]], content: bytes
) -> None:
    requests = 0

    async def script(peer: Peer) -> None:
        nonlocal requests
        await peer.greet()
        while True:
            stream = (await peer.request()).stream
            requests += 1
            if content:
                peer.send(peer.headers(stream, head) + data(stream, content) + peer.trailers(stream, [("other", "1")]))
            else:
                peer.send(peer.trailers(stream, head))

    async with serving(script) as channel:
        members = client.Client(EtcdSettings(endpoints=(channel._endpoint,), prefix="/test"))
        with pytest.raises(StorageUnavailable, match="whether the write was done is not known"):
            await members.call("txn", messages.TxnRequest(), repeatable=False)
        await members.close()
    assert requests == 1


async def test_a_write_whose_sign_in_fails_has_a_known_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        while True:
            request = await peer.request()
            assert request.headers[":path"].endswith("/Authenticate")
            peer.send(peer.trailers(request.stream, [(":status", "500")]))

    monkeypatch.setattr(client, "PATIENCE_SECONDS", 0.0)
    password = tmp_path / "password"
    password.write_text("secret")
    async with serving(script) as channel:
        settings = EtcdSettings(endpoints=(channel._endpoint,), prefix="/test", user="registry", password_file=password)
        members = client.Client(settings)
        with pytest.raises(StorageUnavailable, match=r"sign-in: no gRPC, but HTTP status 500\)$"):
            await members.call("txn", messages.TxnRequest(), repeatable=False)
        await members.close()


@NEEDS_STURDY
async def test_writes_during_a_crash_are_done_once_or_never_and_always_if_answered(
    etcd: EtcdCluster, store: EtcdStorage
) -> None:
    (member,) = etcd.members
    start = await store.current_revision()
    answered: dict[str, int] = {}
    stop = asyncio.Event()

    async def write(writer: int) -> None:
        for number in count():
            if stop.is_set():
                return
            key = f"/{writer}-{number}"
            try:
                answered[key] = await store.create(key, key.encode())
            except StorageUnavailable:
                await asyncio.sleep(0.05)

    writing = asyncio.gather(*(write(n) for n in range(8)))
    for enough in (50, 100):
        await eventually(lambda enough=enough: len(answered) >= enough)  # type: ignore[misc]
        member.kill()
        await asyncio.to_thread(member.start)
    await eventually(lambda: len(answered) >= 150)
    stop.set()
    await writing
    await settled(store)
    events = await store.history("/", after=start)
    reported = {event.key: event.revision for event in events}
    assert len(reported) == len(events)
    assert {key: reported.get(key) for key in answered} == answered


async def nobody_listens(store: EtcdStorage) -> None:
    """Returns once a connection is refused: until the end of the old one is noticed, a write may seem to be sent."""
    async with asyncio.timeout(30):
        while True:
            try:
                await store._client.member.call("status", messages.StatusRequest(), metadata=(), seconds=2)
            except RpcError as error:
                if errors.had_no_effect(error):
                    return


async def test_a_write_before_anybody_listens_waits_for_a_server(
    etcd: EtcdCluster, store: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (member,) = etcd.members
    monkeypatch.setattr(client, "PATIENCE_SECONDS", 60.0)
    member.kill()
    await nobody_listens(store)
    write = asyncio.ensure_future(store.create("/a", b"1"))
    await asyncio.sleep(0)
    await asyncio.to_thread(member.start)
    # It could not be sent at first, so sending it again is safe.
    revision = await write
    assert keys(await store.list("/", revision=revision)) == ["/a"]


async def test_an_etcd_that_goes_away_and_comes_back_is_logged_once_each_with_what_to_do(
    etcd: EtcdCluster, store: EtcdStorage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (member,) = etcd.members
    caplog.set_level("INFO", "clusterregistry.apiserver.storage.etcd")
    monkeypatch.setattr(client, "PATIENCE_SECONDS", 1.0)
    member.kill()
    for key in ("/a", "/b"):
        with pytest.raises(StorageUnavailable):
            await store.create(key, b"")
    await asyncio.to_thread(member.start)
    await eventually(lambda: not store.problem())
    await settled(store)
    gone, back = caplog.records
    assert (gone.levelname, back.levelname) == ("WARNING", "INFO")
    assert "What to do: see that etcd runs" in gone.getMessage()
    assert back.getMessage().endswith(f"answers again, at {store._client.member.endpoint}")


async def test_a_call_that_is_given_up_disturbs_no_other(etcd: EtcdCluster, store: EtcdStorage) -> None:
    (member,) = etcd.members
    created = await store.create("/a", b"0")
    for _ in range(3):
        member.pause()
        work = [
            asyncio.ensure_future(each)
            for each in (
                store.get("/a"),
                store.list("/"),
                store.history("/", after=created - 1),
                store.update("/a", b"1", expected=created),
                store.current_revision(),
                store.wait_for(created + 100),
                store.compact(1),
            )
        ]
        await asyncio.sleep(0.02)
        under_way = [each for each in work if not each.done()]  # some may have been answered before it froze
        given_up = [each for each in under_way[::2] if each.cancel()]
        await asyncio.sleep(0)
        given_up += [each for each in under_way[1::2] if each.cancel()]
        await asyncio.wait(work)
        assert given_up
        assert all(each.cancelled() for each in given_up)
        member.resume()
        await store.get("/a")
        await settled(store)
    assert await store.create("/b", b"") > created


async def test_no_caller_gets_a_revision_requested_before_its_call(
    store: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, may_answer = store._reader._request_revision, asyncio.Event()

    async def ask_slowly() -> int:
        revision = await ask()
        await may_answer.wait()
        return revision

    monkeypatch.setattr(store._reader, "_request_revision", ask_slowly)
    before = asyncio.ensure_future(store.current_revision())
    await asyncio.sleep(0)
    written = await store.create("/a", b"")
    after = [asyncio.ensure_future(store.current_revision()) for _ in range(3)]
    await asyncio.sleep(0)
    may_answer.set()
    assert await before <= written
    assert await asyncio.gather(*after) == [written] * 3


async def test_a_response_without_a_waiting_caller_may_be_an_error(
    store: EtcdStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> int:
        await asyncio.sleep(0)
        raise StorageUnavailable("gone")

    monkeypatch.setattr(store._reader, "_request_revision", fail)
    asking = asyncio.ensure_future(store.current_revision())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    store._reader._requesting = None
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_concurrent_callers_share_a_request_for_the_revision(
    store: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    ask = store._reader._request_revision

    async def counted() -> int:
        nonlocal asked
        asked += 1
        return await ask()

    monkeypatch.setattr(store._reader, "_request_revision", counted)
    first = asyncio.ensure_future(store.current_revision())
    await asyncio.sleep(0)
    await asyncio.gather(first, *(store.current_revision() for _ in range(50)))
    assert asked == 2


def streams(etcd: EtcdCluster) -> int:
    """How many watches the server has open."""
    found = re.search(r"^etcd_debugging_mvcc_watch_stream_total (\S+)", etcd.members[0]._ask("/metrics"), re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


async def test_nothing_is_left_of_a_closed_store(etcd: EtcdCluster) -> None:
    for _ in range(3):
        store = await EtcdStorage.open(settings_for(etcd, prefix=f"/{next(_numbers)}"))
        revision = await store.create("/a", b"")
        await settled(store)
        await store.history("/", after=revision - 1)
        waiting = asyncio.ensure_future(store.wait_for(revision + 100))
        await asyncio.sleep(0.02)
        await store.close()
        with suppress(StorageUnavailable):
            await waiting
    await eventually(lambda: len(asyncio.all_tasks()) == 1)
    await eventually(lambda: streams(etcd) == 0)
    gc.collect()  # what was never awaited or retrieved would complain now


async def test_closing_lets_the_writes_under_way_finish(etcd: EtcdCluster, store: EtcdStorage) -> None:
    other = await EtcdStorage.open(settings_for(etcd, prefix=store._range.key("").decode()))
    writes = [asyncio.ensure_future(other.create(f"/{n}", b"")) for n in range(30)]
    await asyncio.sleep(0)
    await other.close()
    revisions = await asyncio.gather(*writes)
    assert [item.revision for item in (await store.list("/")).items] == [
        revisions[n] for n in sorted(range(30), key=str)
    ]


async def test_closing_waits_for_the_writes_of_the_lease_holder(
    etcd: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_lease, "_FIRST_DELAY", 0.02)
    for turn in range(8):
        store = await EtcdStorage.open(settings_for(etcd, prefix=f"/{next(_numbers)}"))
        await eventually(lambda store=store: store.known_revision() is not None)  # type: ignore[misc]
        # Large ones: etcd gets the revocation of the lease while it still reads them.
        writes = [asyncio.ensure_future(store.create(f"/{n}", b"x" * 20_000)) for n in range(100)]
        await asyncio.sleep(turn / 1000)
        await store.close()
        assert store.known_revision() is None
        assert len(set(await asyncio.gather(*writes))) == 100
    assert writer_lease._LEASE_KEY not in await asyncio.to_thread(etcd.etcdctl, "get", "--prefix", "/", "--keys-only")


async def test_a_store_can_be_closed_while_its_etcd_is_away(etcd: EtcdCluster) -> None:
    (member,) = etcd.members
    store = await EtcdStorage.open(settings_for(etcd, prefix=f"/{next(_numbers)}"))
    member.pause()
    write = asyncio.ensure_future(store.create("/a", b""))
    await asyncio.sleep(0.02)
    async with asyncio.timeout(30):
        await store.close()
    member.resume()
    with pytest.raises(StorageUnavailable):
        await write
    await eventually(lambda: len(asyncio.all_tasks()) == 1)


PROGRAM = """
import asyncio, sys
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from clusterregistry.apiserver.storage.etcd.store import EtcdStorage

async def main():
    asyncio.get_running_loop().slow_callback_duration = 60  # on a busy machine everything is slow
    store = await EtcdStorage.open(EtcdSettings(endpoints=(sys.argv[1],), prefix="/exit"))
    revision = await store.current_revision()
    await store.create(f"/{revision}", b"")
    while sys.argv[3] == "holding" and store.known_revision() is None:
        await asyncio.sleep(0.05)
    if sys.argv[2] == "close":
        await store.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("lease", ["not holding", "holding"])
@pytest.mark.parametrize("end", ["close", "leave"])
async def test_a_process_ends_in_silence(etcd: EtcdCluster, end: str, lease: str) -> None:
    endpoint = etcd.endpoints[0].partition("://")[2]
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, endpoint, end, lease]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@NEEDS_STURDY
async def test_a_store_in_which_nothing_happens_is_not_taken_for_lost(
    etcd: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_loop, "_PROGRESS_SECONDS", 0.1)
    monkeypatch.setattr(watch_loop, "_SILENCE_SECONDS", 4.0)  # longer than a loaded machine keeps etcd silent
    broken_off: list[Exception] = []
    monkeypatch.setattr(watch_loop.WatchLoop, "_note_failure", lambda *reported: broken_off.append(reported[-1]))
    store = await EtcdStorage.open(settings_for(etcd, prefix=f"/{next(_numbers)}"))
    await asyncio.sleep(6.0)
    await store.close()
    assert not broken_off


def _first_key(request: bytes) -> bytes:
    """What the first condition of a transaction is about."""
    return bytes(messages.TxnRequest.FromString(request).compare[0].key)
