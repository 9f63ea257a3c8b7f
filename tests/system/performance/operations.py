"""Counting what threads of Python do: bytecodes executed, and calls of Python and C functions.

What happens inside of a C function counts as one call, whatever it does. So this finds loops, needless layers and work
that is done twice; it does not find a slower codec. Times are for ``make bench-*``.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any

Trace = Callable[[FrameType, str, Any], Any]

_OURS = __file__.rpartition("/")[0]
"""Where what does the measuring is: that does not count."""

_is_background: ContextVar[bool] = ContextVar("is_background", default=False)


@contextmanager
def background() -> Iterator[None]:
    """What is started meanwhile does not count, nor what that starts: tasks, callbacks and timers inherit it.

    A server has work of its own, such as that of its controllers, and when it is done is a matter of time.
    """
    token = _is_background.set(True)
    try:
        yield
    finally:
        _is_background.reset(token)


class Operations:
    """How many operations there were, in which functions, and how many at most before the loop had its turn."""

    def __init__(self, by_code: Counter[CodeType], *, longest_run: int = 0) -> None:
        self._by_code = by_code
        self.total = by_code.total()
        self.longest_run = longest_run

    def beyond(self, other: Operations, *, shares: int) -> Operations:
        """A share of what there was more than in the other ones."""
        more = {code: count - other._by_code[code] for code, count in self._by_code.items()}
        return Operations(Counter({code: round(count / shares) for code, count in more.items() if count > 0}))

    def top(self, count: int = 15) -> str:
        """The functions that did most of it, one a line."""
        rows = [f"{done:10,}  {_place(code)}" for code, done in self._by_code.most_common(count)]
        return "\n".join(rows)


def _place(code: CodeType) -> str:
    file = code.co_filename.rpartition("/src/")[2].rpartition("/site-packages/")[2]
    return f"{file}:{code.co_firstlineno} {code.co_qualname}"


class Tracer:
    """Counts between ``begin`` and ``end``, in each thread that it was set for.

    The interpreter has one tracer for each thread, and one that threads get when they are started.
    """

    def __init__(self) -> None:
        self._counts: Counter[CodeType] = Counter()
        self._counting = False
        self._loop_frame: FrameType | None = None
        self._before_run = self._longest_run = 0
        self._trace, self._profile = self._functions()

    def _functions(self) -> tuple[Trace, Trace]:
        """What the interpreter calls. Closures: they are called for every single bytecode."""
        is_background = _is_background.get

        def count_opcode(frame: FrameType, event: str, _: Any) -> Trace:
            if event == "opcode" and self._counting:
                self._counts[frame.f_code] += 1
            return count_opcode

        def trace(frame: FrameType, _: str, __: Any) -> Trace | None:
            if frame.f_code.co_filename.startswith(_OURS) or is_background():
                return None
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
            if self._counting:
                if frame.f_back is self._loop_frame:
                    self._note_run()
                self._counts[frame.f_code] += 1
            return count_opcode

        def profile(frame: FrameType, event: str, _: Any) -> None:
            is_ours = frame.f_code.co_filename.startswith(_OURS)
            if event == "c_call" and self._counting and not (is_ours or is_background()):
                self._counts[frame.f_code] += 1

        return trace, profile

    def _note_run(self) -> None:
        """The loop has its turn: what runs now it has called itself."""
        done = self._counts.total()
        self._longest_run, self._before_run = max(self._longest_run, done - self._before_run), done

    @contextmanager
    def on_new_threads(self) -> Iterator[None]:
        """Threads that are started meanwhile are traced for good."""
        threading.settrace(self._trace)
        threading.setprofile(self._profile)
        try:
            yield
        finally:
            threading.settrace(None)
            threading.setprofile(None)

    def begin(self, loop_frame: FrameType | None) -> None:
        """Counts from now on, also in this thread, whose loop is run by a function with this frame."""
        self._loop_frame = loop_frame
        self._before_run = self._longest_run = 0
        sys.settrace(self._trace)
        sys.setprofile(self._profile)
        self._counting = True

    def end(self) -> Operations:
        """Counts no more; ``begin`` was called in this thread."""
        self._counting = False
        stop()
        self._note_run()
        counted, self._counts = self._counts, Counter()
        return Operations(counted, longest_run=self._longest_run)


def stop() -> None:
    """This thread is not traced any more: tracing makes it slow, also while nothing is counted."""
    sys.setprofile(None)
    sys.settrace(None)
