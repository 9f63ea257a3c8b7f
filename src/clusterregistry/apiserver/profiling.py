"""``/debug/pprof/``: where the server's time and memory go, for ``--profiling``.

The paths are those of kube-apiserver where Python has the same to show. Profiles are in pprof's format, so that
``go tool pprof`` opens them. Imported with the first request; authorization decides on readers, as for every path.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from types import FrameType
from typing import Any

from clusterregistry.apiserver.endpoints.encoding import page_not_found
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.http.response import Answer, Response, text_response
from clusterregistry.apiserver.profile_encoding import Place, Profile, Stack

PREFIX = "/debug/pprof"

MAX_SECONDS = 60
"""Of one CPU profile."""
_USUAL_SECONDS = 30
"""As in Go, also for a text that is no positive number."""
_INTERVAL = 0.01
"""Seconds of CPU time between two samples, as in Go. A sample takes 0.1 ms at most, one hundredth of that."""

_CLOCK_OF_THREAD = 6
"""CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED of Linux."""

_MAX_DEPTH = 128
"""Places of a stack that are kept, the innermost."""
_MAX_STACKS = 20_000
"""Different stacks of one profile. What comes after that is counted together."""
_TURN = 200
"""Tasks that are looked at before other requests have their turn: about 2 ms."""

Page = tuple[Callable[[Request], Awaitable[Answer]], str]
"""What answers, and what it shows."""

_MANY: Stack = (Place("(more stacks than are kept)"),)
_PROFILE_TYPE = b"application/octet-stream"


class Profiling:
    """Serves the pages. One CPU profile is made at a time, and one profile of the heap."""

    def __init__(self) -> None:
        self._pages: Mapping[str, Page] = {
            "cmdline": (_command_line, "the command line of this server"),
            "heap": (
                self._heap,
                "the objects in memory by type, or by place if PYTHONTRACEMALLOC is set; ?debug=1: text",
            ),
            "profile": (self._profile, f"the CPU time of all threads for ?seconds=30, at most {MAX_SECONDS}"),
            "tasks": (_tasks, "the tasks of the event loop with their stacks, equal ones together"),
            "threads": (_threads, "the threads with their stacks"),
        }
        self._is_busy = False

    async def answer(self, request: Request) -> Answer:
        name = request.path.removeprefix(PREFIX).strip("/")
        if not name:
            lines = [f"{PREFIX}/{page:8} {text}\n" for page, (_, text) in self._pages.items()]
            return text_response("".join(lines))
        if name not in self._pages:
            return page_not_found()
        return await self._pages[name][0](request)

    async def _profile(self, request: Request) -> Answer:
        seconds = _seconds(request.query.first("seconds"))
        if seconds > MAX_SECONDS:
            return text_response(f"profile duration exceeds {MAX_SECONDS} seconds\n", status=HTTPStatus.BAD_REQUEST)
        if threading.current_thread() is not threading.main_thread():
            text = "CPU profiles need a server that runs in the main thread\n"
            return text_response(text, status=HTTPStatus.NOT_IMPLEMENTED)
        return await self._alone("cpu profiling", lambda: _cpu_profile(seconds))

    async def _heap(self, request: Request) -> Answer:
        as_text = request.query.first("debug") not in ("", "0")
        return await self._alone("heap profiling", lambda: asyncio.to_thread(_heap_response, as_text=as_text))

    async def _alone(self, what: str, make: Callable[[], Awaitable[Response]]) -> Answer:
        """As in Go a second one is refused; there it is a 500."""
        if self._is_busy:
            text = f"Could not enable {what}: profiling already in use\n"
            return text_response(text, status=HTTPStatus.CONFLICT)
        self._is_busy = True
        try:
            return await make()
        finally:
            self._is_busy = False


def _seconds(given: str) -> float:
    try:
        seconds = float(given)
    except ValueError:
        return _USUAL_SECONDS
    return seconds if seconds > 0 else _USUAL_SECONDS


def _profile_response(profile: Profile, name: str) -> Response:
    disposition = (b"content-disposition", b'attachment; filename="%b"' % name.encode())
    headers = [disposition, (b"x-content-type-options", b"nosniff")]
    return Response(HTTPStatus.OK, _PROFILE_TYPE, (profile.encoded(),), headers)


async def _cpu_profile(seconds: float) -> Response:
    sampler = Sampler()
    sampler.start()
    try:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 1.0))
            sampler.find_threads()
    finally:
        sampler.stop()
    return await asyncio.to_thread(lambda: _profile_response(sampler.profile(), "profile"))


class Sampler:
    """Collects the stacks of all threads, with the CPU time that each has used since the last sample.

    A timer of the system that runs while the process computes makes a signal, for which Python interrupts the main
    thread wherever it is. A thread that looks at the others would not do: it would find them at the few places where
    they give up the interpreter. Time in code that is not Python's counts for the line that called it.
    """

    def __init__(self) -> None:
        self.samples: dict[Stack, list[int]] = {}
        self._threads: dict[int, int] = {}
        """The numbers of threads in the system, by those of Python."""
        self._used: dict[int, int] = {}
        self._began = time.time_ns()

    def start(self) -> None:
        """Only the main thread can do this."""
        self.find_threads()
        self._used = {thread: _cpu_time(thread) for thread in self._threads.values()}
        signal.signal(signal.SIGPROF, self._sample)
        signal.siginterrupt(signal.SIGPROF, False)  # calls of the system that libraries make are not broken off
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)  # a last one may be on its way, and would end the process

    def find_threads(self) -> None:
        """Not for each sample: it takes a lock, which the interrupted code may have."""
        self._threads = {one.ident: one.native_id for one in threading.enumerate() if one.ident and one.native_id}

    def profile(self) -> Profile:
        return Profile(
            kinds=[("samples", "count"), ("cpu", "nanoseconds")],
            samples=self.samples,
            time=self._began,
            duration=time.time_ns() - self._began,
            period=int(_INTERVAL * 1e9),
        )

    def _sample(self, _: int, interrupted: FrameType | None) -> None:
        """Must not raise: the interrupted code would get it."""
        with contextlib.suppress(Exception):
            frames: dict[int, FrameType | None] = dict(sys._current_frames())  # noqa: SLF001 - it is documented
            frames[threading.get_ident()] = interrupted
            for ident, thread in self._threads.items():
                if (frame := frames.get(ident)) is not None:
                    self._count(thread, frame)

    def _count(self, thread: int, frame: FrameType) -> None:
        used = _cpu_time(thread)
        spent, self._used[thread] = used - self._used.get(thread, used), used
        if spent <= 0:  # it waits
            return
        stack = _stack_of(frame)
        if stack not in self.samples and len(self.samples) >= _MAX_STACKS:
            stack = _MANY
        counts = self.samples.setdefault(stack, [0, 0])
        counts[0] += 1
        counts[1] += spent


def _cpu_time(thread: int) -> int:
    """Nanoseconds that a thread, by its number in the system, has computed; 0 for one that has ended.

    The number of the clock is made here as Linux does: ``time.pthread_getcpuclockid`` may crash for an ended thread.
    """
    try:
        return time.clock_gettime_ns((~thread << 3) | _CLOCK_OF_THREAD)
    except OSError:
        return 0


def _stack_of(frame: FrameType | None) -> Stack:
    places: list[Place] = []
    while frame is not None and len(places) < _MAX_DEPTH:
        places.append(_place_of(frame))
        frame = frame.f_back
    return tuple(places)


def _place_of(frame: FrameType) -> Place:
    code = frame.f_code
    module = frame.f_globals.get("__name__", "")
    return Place(f"{module}.{code.co_qualname}", code.co_filename, frame.f_lineno or code.co_firstlineno)


def _heap_response(*, as_text: bool) -> Response:
    kinds = [("objects", "count"), ("space", "bytes")]
    samples = _traced() if tracemalloc.is_tracing() else _counted()
    if not as_text:
        return _profile_response(Profile(kinds=kinds, samples=samples, time=time.time_ns()), "heap")
    rows = sorted(samples.items(), key=lambda one: one[1][1], reverse=True)
    lines = [f"{count:>12}{size:>16}  {_shown(stack[0])}" for stack, (count, size) in rows]
    return text_response("\n".join([f"{'objects':>12}{'bytes':>16}", *lines, ""]))


def _traced() -> dict[Stack, list[int]]:
    """The memory that Python has allocated since tracing began, by place."""
    found: dict[Stack, list[int]] = {}
    for one in tracemalloc.take_snapshot().statistics("traceback")[:_MAX_STACKS]:
        # The most recent call is the last one.
        stack = tuple(Place(frame.filename, frame.filename, frame.lineno) for frame in reversed(one.traceback))
        counts = found.setdefault(stack, [0, 0])
        counts[0] += one.count
        counts[1] += one.size
    return found


def _counted() -> dict[Stack, list[int]]:
    """The objects that the collector knows, by type, each with its own size alone.

    Those in which no cycle can arise are missing, such as texts and the objects of the cache.
    """
    found: dict[type[Any], list[int]] = {}
    for one in gc.get_objects():
        counts = found.setdefault(type(one), [0, 0])
        counts[0] += 1
        counts[1] += _size(one)
    return {(Place(f"{kind.__module__}.{kind.__qualname__}"),): counts for kind, counts in found.items()}


def _size(one: object) -> int:
    try:
        return sys.getsizeof(one)
    except Exception:  # noqa: BLE001 - types of libraries may answer as they like
        return 0


async def _command_line(_: Request) -> Answer:
    return text_response("\0".join(sys.orig_argv))


async def _threads(_: Request) -> Answer:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()  # noqa: SLF001 - it is documented
    stacks = [f"{names.get(ident, ident)}:\n{_text(_stack_of(frame))}" for ident, frame in frames.items()]
    return text_response("\n".join([f"{len(frames)} threads\n", *stacks]))


async def _tasks(_: Request) -> Answer:
    """In turns: a server with many watches has a task or two for each."""
    tasks = asyncio.all_tasks()
    found: Counter[Stack] = Counter()
    for index, task in enumerate(tasks):
        if index % _TURN == _TURN - 1:
            await asyncio.sleep(0)
        stack = _stack_of_awaitable(task.get_coro())
        found[stack if stack in found or len(found) < _MAX_STACKS else _MANY] += 1
    stacks = [f"{count} @\n{_text(stack)}" for stack, count in found.most_common()]
    return text_response("\n".join([f"{len(tasks)} tasks\n", *stacks]))


def _stack_of_awaitable(awaited: Any) -> Stack:
    """The coroutines that wait for each other, the innermost first."""
    places: list[Place] = []
    while awaited is not None and len(places) < _MAX_DEPTH:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is None:
            break
        places.append(_place_of(frame))
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return tuple(reversed(places))


def _text(stack: Iterable[Place]) -> str:
    return "".join(f"    {_shown(place)}\n" for place in stack)


def _shown(place: Place) -> str:
    return f"{place.function}  {place.file}:{place.line}" if place.line else place.function
