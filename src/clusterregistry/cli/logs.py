"""Logging of the process: lines on standard error, as text for people or as JSON for programs."""

from __future__ import annotations

import logging
import sys
import threading
import time
from pathlib import PurePath
from typing import TYPE_CHECKING

from clusterregistry.cli.console import with_program
from clusterregistry.cli.options.general import GeneralOptions

if TYPE_CHECKING:
    from types import TracebackType

EVERYTHING = 5

_log = logging.getLogger(__name__)


class _Lines(logging.Formatter):
    """``2030-01-02T03:04:05.678Z INFO clusterregistry.apiserver: ready``; times in UTC, as in Kubernetes' own logs."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self.converter = time.gmtime


class _JSONLines(logging.Formatter):
    """One JSON object a line, with the keys of kube-apiserver's: ``ts`` (milliseconds since 1970), ``caller``, ``msg``.

    ``v`` is there for all but errors, ``err`` for errors that have a cause. kube-apiserver does not mark warnings;
    ``level`` does. The traceback, where there is one, is the text of ``stacktrace``.
    """

    def format(self, record: logging.LogRecord) -> str:
        import json  # noqa: PLC0415 - only for the format JSON

        return json.dumps(self._fields(record))

    def _fields(self, record: logging.LogRecord) -> dict[str, object]:
        fields: dict[str, object] = {
            "ts": round(record.created * 1000, 4),
            "caller": f"{'/'.join(PurePath(record.pathname).parts[-2:])}:{record.lineno}",
            "logger": record.name,
            "level": record.levelname.lower(),
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            fields["v"] = 1 if record.levelno < logging.INFO else 0
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            fields["err"] = f"{type(error).__name__}: {error}"
            fields["stacktrace"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stacktrace"] = record.stack_info
        return fields


class _CommandNames(logging.Filter):
    """Completes the commands that a message quotes by the name of the program."""

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "`" in message:
            record.msg, record.args = with_program(message, self._program), None
        return True


def configure(general: GeneralOptions, program: str = "") -> None:
    """Sets up the root logger: -v=1 adds our own details, -v=5 everything of the libraries too.

    ``program`` is put before the commands that messages quote, such as `storage check`.
    """
    verbosity = general.v
    handler = logging.StreamHandler(sys.stderr)
    if program:
        handler.addFilter(_CommandNames(program))
    as_json = general.logging_format == "json"
    handler.setFormatter(_JSONLines() if as_json else _Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= EVERYTHING else logging.WARNING)
    logging.getLogger("clusterregistry").setLevel(logging.DEBUG if verbosity else logging.INFO)
    if as_json:
        _log_uncaught_exceptions()


def are_json() -> bool:
    """Whether the log is JSON, so that every line on standard error has to be JSON."""
    return any(isinstance(handler.formatter, _JSONLines) for handler in logging.getLogger().handlers)


def _log_uncaught_exceptions() -> None:
    """Logs the failures that Python would print as plain text over many lines."""
    logging.captureWarnings(capture=True)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    sys.unraisablehook = _unraisable


def _uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    _log.critical("an exception ends the program", exc_info=(kind, error, traceback))


def _uncaught_in_thread(happened: threading.ExceptHookArgs) -> None:
    error = happened.exc_value or happened.exc_type()
    _log.error("an exception ends a thread", exc_info=(happened.exc_type, error, happened.exc_traceback))


def _unraisable(happened: sys.UnraisableHookArgs) -> None:
    error = happened.exc_value or happened.exc_type()
    _log.error(
        happened.err_msg or "an exception where none can be raised",
        exc_info=(happened.exc_type, error, happened.exc_traceback),
    )
