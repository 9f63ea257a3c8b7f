"""The first module that a program runs: it imports nothing heavy, so that Ctrl-C during the imports ends quietly."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import NoReturn


def run(module: str, *, interrupted: int = 0) -> NoReturn:
    """Calls ``main`` of a module and exits with its status; ``interrupted`` is the status after Ctrl-C."""
    try:
        gc.disable()  # imports create objects that all stay: a collection would find nothing
        main = import_module(module).main
        gc.freeze()  # later collections skip these objects
        gc.enable()
        status = main(sys.argv[1:], os.environ)
    except KeyboardInterrupt:
        status = interrupted
    sys.exit(_flushed(status))


def _flushed(status: int) -> int:
    """The status, or that of a failure if the output cannot be written, such as to a disk that is full.

    A pipe whose reader has gone, such as ``head``, is no failure. Either way nothing is left for the interpreter to
    write at its end: that would fail again, with a message of its own.
    """
    from clusterregistry.cli import exit_status  # noqa: PLC0415 - see the module
    from clusterregistry.cli.console import complain, output_failure  # noqa: PLC0415

    failure = output_failure()
    try:
        if sys.stdout is not None:  # None: the program was started without one
            sys.stdout.flush()
    except OSError as error:
        failure = failure or (None if isinstance(error, BrokenPipeError) else error)
        _discard_output()
    if failure is None:
        return status
    complain(f"The output cannot be written: {failure.strerror}", "What to do: write it somewhere else")
    return status or exit_status.STARTUP


def _discard_output() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
