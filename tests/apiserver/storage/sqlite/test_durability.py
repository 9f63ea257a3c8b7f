"""What is acknowledged is on disk: a real process is killed in the midst of its writes."""

import asyncio
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.storage import kill_victim

ROUNDS = 5


def killed_in_the_midst(path: Path, *, lines: int) -> dict[str, tuple[int, int]]:
    """Runs the victim until it has reported so many writes, kills it, and returns the last report of each key."""
    victim = subprocess.Popen([sys.executable, kill_victim.__file__, str(path)], stdout=subprocess.PIPE)
    assert victim.stdout is not None
    reports = [victim.stdout.readline() for _ in range(lines)]
    time.sleep(random.random() / 100)  # anywhere within a commit
    victim.send_signal(signal.SIGKILL)
    # What it managed to say is acknowledged; only the line in the making may be cut.
    reports += [line for line in victim.stdout if line.endswith(b"\n")]
    victim.stdout.close()
    assert victim.wait() == -signal.SIGKILL
    last = {}
    for report in reports:
        key, revision, count = report.decode().split()
        last[key] = (int(revision), int(count))
    return last


async def test_kill_minus_nine_loses_nothing_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    newest = 1
    for _ in range(ROUNDS):
        acknowledged = await asyncio.to_thread(killed_in_the_midst, path, lines=random.randint(40, 120))
        storage = await SQLiteStorage.open(path)
        for key, (revision, count) in acknowledged.items():
            events = [event for event in await storage.history(key, after=newest) if event.key == key]
            assert KeyValue(key, b"%d" % count, revision) in [event.current for event in events]
            # Later ones may have been durable before the victim could say so: at most a delete and a create.
            assert [event.revision > revision for event in events].count(True) <= 2
        revisions = [event.revision for event in await storage.history("/", after=newest)]
        assert revisions == list(range(newest + 1, storage.revision + 1))
        newest = storage.revision
        await storage.close()


async def test_a_killed_process_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    await asyncio.to_thread(killed_in_the_midst, path, lines=1)
    storage = await SQLiteStorage.open(path)
    await storage.close()


async def test_a_commit_waits_for_the_disk_and_survives_a_power_cut(sqlite: SQLiteStorage) -> None:
    # What kill -9 cannot show: the system's cache outlives a process, not a power cut.
    settings = await sqlite._writer.transact(
        lambda connection: [
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
        ]
    )
    assert settings == ["wal", 2]
