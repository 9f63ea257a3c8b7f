"""Whether a file is whole: what SQLite finds out about its pages, and what we know about our rows.

Nothing here changes a file, and all of it works while a server writes to it: a check sees the state of
one moment. What values mean is not known here; who wants them looked at brings a function for that.
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
"""Told how much of how much is done; of 0 when that is not known yet."""

ValueCheck = Callable[[str, bytes], str]
"""What is wrong with the value of a key, for a person; empty when nothing is."""

LARGE_FILE = 64 << 20
"""Bytes, about a second's reading: from here on a start does not wait for the check."""

PAUSE_SECONDS = 10.0
"""Until such a check begins: first the server is to get ready, and it reads the same file for that."""

_PROBLEMS = 100
"""SQLite stops looking after so many; nobody reads more."""

_INSTRUCTIONS = 100_000
"""Of SQLite's machine, some milliseconds: between two signs of life."""

_Row = tuple[int, object, int, object]
"""revision, key, prev_revision, value. In a damaged file they can be anything."""

_ROWS = "SELECT revision, key, prev_revision, value FROM log ORDER BY revision"
_ROWS_PER_SIGN = 1000


def problems(path: Path, *, full: bool, value_problem: ValueCheck, progress: Progress) -> Iterator[str]:
    """What is wrong with a file, each in a line for a person. ``full`` also compares what SQLite keeps twice.

    Raises StorageUnavailable when the file cannot be read, is not ours, or is of a newer format.
    """
    try:
        with closing(schema.connect_reader(path)) as connection:
            yield from _problems(connection, full=full, value_problem=value_problem, progress=progress)
    except (sqlite3.Error, OSError) as error:
        if not _is_damage(error):
            raise unavailable(path, error) from error
        yield f"the file cannot be read any further: {error}"


def check_at_start(path: Path, *, report: Callable[[str], None]) -> Callable[[], None]:
    """Has SQLite look at a large file while it is served; a small one was inspected before. Blocks for a moment.

    A thread of its own does so, and in the end calls ``report`` with the damage, or with "" when there is none. The
    function that is returned ends such a check early, without a report; call it before the file is closed. Idempotent.
    """
    with translated(path):
        return _BackgroundCheck(path, report).stop if is_large(path) else lambda: None


def is_large(path: Path) -> bool:
    """Whether it takes too long to look through a file, with its log, before it is served."""
    return _size(path) >= LARGE_FILE


def engine_problems(connection: sqlite3.Connection, *, full: bool = False) -> list[str]:
    """What SQLite itself finds wrong with the pages of a file."""
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
        with suppress(sqlite3.ProgrammingError):  # it is done, and its connection closed
            self._connection.interrupt()
        self._thread.join()

    def _work(self) -> None:
        # An interrupt that comes between two statements is lost: this sees to it that the next one ends as well.
        self._connection.set_progress_handler(self._stopping.is_set, _INSTRUCTIONS)
        with closing(self._connection):
            if self._stopping.wait(PAUSE_SECONDS):
                return
            damage = damage_in(self._connection, self._path)
        if not self._stopping.is_set():
            self._report(damage)


def damage_in(connection: sqlite3.Connection, path: Path) -> str:
    """The first thing that SQLite finds wrong, for a person; empty when there is none."""
    try:
        found = engine_problems(connection)
    except sqlite3.Error as error:
        return str(unavailable(path, error))
    return f"{path} is damaged: {found[0]}" if found else ""


def _problems(
    connection: sqlite3.Connection, *, full: bool, value_problem: ValueCheck, progress: Progress
) -> Iterator[str]:
    # Text that is no UTF-8 is one more thing to tell, not a reason to stop.
    connection.text_factory = lambda text: text.decode(errors="replace")
    with _signs_of_life(connection, progress):
        yield from engine_problems(connection, full=full)
    connection.execute("BEGIN")
    numbers = schema.numbers(connection)
    if numbers["swept"] > numbers["compacted"]:
        yield "rows are removed up to revision {swept}, beyond the compacted revision {compacted}".format_map(numbers)
    (total,) = connection.execute("SELECT count(*) FROM log").fetchone()
    replay = _Replay(numbers, value_problem)
    for done, row in enumerate(connection.execute(_ROWS)):
        if done % _ROWS_PER_SIGN == 0:
            progress(done, total)
        yield from replay.problems(row)


@contextmanager
def _signs_of_life(connection: sqlite3.Connection, progress: Progress) -> Iterator[None]:
    """While SQLite looks at pages it does not tell how far it is, but it lets us know that it goes on."""
    connection.set_progress_handler(lambda: progress(0, 0), _INSTRUCTIONS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


class _Replay:
    """Goes through the log from its beginning and compares each row with those before it."""

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
        """Where compaction has been, what a row supersedes is gone, and so are deletions."""
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


def _size(path: Path) -> int:
    wal = Path(f"{path}-wal")
    return path.stat().st_size + (wal.stat().st_size if wal.exists() else 0)
