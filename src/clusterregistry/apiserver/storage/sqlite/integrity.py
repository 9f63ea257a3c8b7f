"""Integrity checks of a file: SQLite's check of its pages, and the rules of the log's rows.

A check changes nothing and works while a server writes to the file: it sees the state of one moment. The caller passes
a function that checks values.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from clusterregistry.apiserver.storage.sqlite import schema
from clusterregistry.apiserver.storage.sqlite.errors import primary_code, translated, unavailable

Progress = Callable[[int, int], None]
"""Called with the amount done and the total, which is 0 while it is unknown."""

ValueCheck = Callable[[str, bytes], str]
"""Returns what is wrong with the value of a key, for an operator; empty if nothing is."""

LARGE_FILE = 64 << 20
"""Bytes, about one second of reading: a server does not wait for the check of a file of this size."""

PAUSE_SECONDS = 10.0
"""The delay of such a check: the server first gets ready, for which it reads the same file."""

_PROBLEMS = 100
"""SQLite stops after so many problems."""

_INSTRUCTIONS = 100_000
"""Instructions of SQLite's virtual machine between two progress reports: some milliseconds."""

_Row = tuple[int, object, int, object]
"""revision, key, prev_revision, value. In a damaged file they can be anything."""

_ROWS = "SELECT revision, key, prev_revision, value FROM log ORDER BY revision"
_ROWS_PER_REPORT = 1000


def problems(path: Path, *, full: bool, value_problem: ValueCheck, progress: Progress) -> Iterator[str]:
    """The problems of a file, one line each. ``full`` also compares indexes with their tables.

    Raises StorageUnavailable if the file cannot be read, belongs to another program or has a newer format.
    """
    try:
        with closing(schema.connect_reader(path)) as connection:
            yield from _problems(connection, full=full, value_problem=value_problem, progress=progress)
    except (sqlite3.Error, OSError) as error:
        if not _is_damage(error):
            raise unavailable(path, error) from error
        yield f"the file cannot be read any further: {error}"


def check_at_start(path: Path, *, report: Callable[[str], None]) -> Callable[[], None]:
    """Starts the check of a large file while it is served; a small one was inspected before. Blocks for a moment.

    The check runs in its own thread and calls ``report`` with the damage, or with "" if there is none. The returned
    function ends the check early, without a report; call it before the file is closed. Idempotent.
    """
    with translated(path):
        return _BackgroundCheck(path, report).stop if is_large(path) else lambda: None


def is_large(path: Path) -> bool:
    """True if checking a file with its log takes too long before it is served."""
    return path.stat().st_size + schema.file_size(Path(f"{path}-wal")) >= LARGE_FILE


def engine_problems(connection: sqlite3.Connection, *, full: bool = False) -> list[str]:
    """The problems that SQLite finds in the pages of a file."""
    statement = f"PRAGMA {'integrity_check' if full else 'quick_check'}({_PROBLEMS})"
    found = [line for (text,) in connection.execute(statement) for line in str(text).splitlines()]
    return [line for line in found if line != "ok" and not line.startswith("***")]  # which is a heading


class _BackgroundCheck:
    """A check of a large file while it is served."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        self._path, self._report = path, report
        self._stopping = threading.Event()
        self._connection = schema.connect_reader(path)
        self._thread = threading.Thread(target=self._work, name="sqlite-check", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        with suppress(sqlite3.ProgrammingError):  # it has finished and closed its connection
            self._connection.interrupt()
        self._thread.join()

    def _work(self) -> None:
        # An interrupt between two statements is lost: the progress handler ends the next one too.
        self._connection.set_progress_handler(self._stopping.is_set, _INSTRUCTIONS)
        with closing(self._connection):
            if self._stopping.wait(PAUSE_SECONDS):
                return
            damage = damage_in(self._connection, self._path)
        if not self._stopping.is_set():
            self._report(damage)


def damage_in(connection: sqlite3.Connection, path: Path) -> str:
    """The first problem that SQLite finds, for an operator; empty if there is none."""
    try:
        found = engine_problems(connection)
    except sqlite3.Error as error:
        return str(unavailable(path, error))
    return f"{path} is damaged: {found[0]}" if found else ""


def _problems(
    connection: sqlite3.Connection, *, full: bool, value_problem: ValueCheck, progress: Progress
) -> Iterator[str]:
    # Invalid UTF-8 is one more problem to report, not a reason to stop.
    connection.text_factory = lambda text: text.decode(errors="replace")
    with _progress_reports(connection, progress):
        yield from engine_problems(connection, full=full)
    connection.execute("BEGIN")
    numbers = schema.numbers(connection)
    if numbers["swept"] > numbers["compacted"]:
        yield "rows are removed up to revision {swept}, beyond the compacted revision {compacted}".format_map(numbers)
    (total,) = connection.execute("SELECT count(*) FROM log").fetchone()
    replay = _Replay(numbers, value_problem)
    for done, row in enumerate(connection.execute(_ROWS)):
        if done % _ROWS_PER_REPORT == 0:
            progress(done, total)
        yield from replay.problems(row)


@contextmanager
def _progress_reports(connection: sqlite3.Connection, progress: Progress) -> Iterator[None]:
    """Reports progress while SQLite checks pages, without an amount, which SQLite does not return."""
    connection.set_progress_handler(lambda: progress(0, 0), _INSTRUCTIONS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


class _Replay:
    """Replays the log from its beginning and compares each row with those before it."""

    def __init__(self, numbers: Mapping[str, int], value_problem: ValueCheck) -> None:
        self._swept, self._value_problem = numbers["swept"], value_problem
        self._live: dict[str, int] = {}

    def problems(self, row: _Row) -> Iterator[str]:
        revision, key, previous, value = row
        if not isinstance(key, str) or not key.startswith("/"):
            yield f"revision {revision}: {key!r} is no key"
            return
        where = f"revision {revision} of {key}"
        if revision <= schema.FIRST_REVISION:
            yield f"{where}: revisions begin behind {schema.FIRST_REVISION}"
        actual = self._live.pop(key, 0)
        deleted = value is None
        if not deleted:
            self._live[key] = revision
        wrong = (
            self._left_over(actual, deleted=deleted)
            if revision <= self._swept
            else _link_problem(previous, actual, deleted=deleted)
        )
        yield from (f"{where}: {each}" for each in (wrong, self._problem_of(key, value)) if each)

    def _left_over(self, actual: int, *, deleted: bool) -> str:
        """After compaction there are no superseded rows and no deletions."""
        left = "this deletion" if deleted else f"revision {actual} too" if actual else ""
        return f"compaction up to revision {self._swept} has left over {left}" if left else ""

    def _problem_of(self, key: str, value: object) -> str:
        if value is None:
            return ""
        return self._value_problem(key, value) if isinstance(value, bytes) else "its value is not bytes"


def _link_problem(previous: int, actual: int, *, deleted: bool) -> str:
    if previous != actual:
        return f"it says that it supersedes {_shown(previous)}, but it supersedes {_shown(actual)}"
    return "it deletes a key that did not exist" if deleted and not actual else ""


def _shown(revision: int) -> str:
    return f"revision {revision}" if revision else "nothing"


def _is_damage(error: Exception) -> bool:
    return primary_code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
