"""Finds the command and answers its status; ``entry`` ends the process with it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from clusterregistry.apiserver.cli import aggregated, help_text, standalone, storage
from clusterregistry.cli import completion, exit_status, logs, version
from clusterregistry.cli.console import complain, say

_log = logging.getLogger(__name__)

Command = Callable[[Sequence[str], Mapping[str, str]], int]

COMMANDS: dict[str, Command] = {
    "standalone": standalone.run,
    "aggregated": aggregated.run,
    "storage": storage.run,
    "version": version.run,
    "completion": completion.run,
}
_HELP = {"-h", "--help", "-help", "help", "--help=all"}


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs one command and answers the exit status. Never raises.

    No mistake, ours or theirs, shows a traceback to a user who did not ask for one.
    """
    try:
        return _dispatch(arguments, environ)
    except KeyboardInterrupt:
        return exit_status.OK
    except Exception as error:  # noqa: BLE001 - no mistake of ours shows a traceback to a user
        if logs.are_json():
            _log.critical("an unexpected failure, a fault of ours", exc_info=True)
            return exit_status.STARTUP
        _log.debug("this is how it came about", exc_info=True)
        complain(
            f"clusterregistry: unexpected {type(error).__name__}: {error}",
            "What to do: this is a fault of ours; -v tells more about it.",
        )
        return exit_status.STARTUP


def _dispatch(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    if not arguments:
        complain("clusterregistry: which command?", "", help_text.PROGRAM.rstrip())
        return exit_status.USAGE
    name, rest = arguments[0], arguments[1:]
    if name in _HELP:
        return _help(rest, environ)
    if name == "--version":
        return version.run(rest, environ)
    command = COMMANDS.get(name)
    return command(rest, environ) if command else _unknown(name)


def _help(about: Sequence[str], environ: Mapping[str, str]) -> int:
    if about and about[0] in COMMANDS:
        more = "--help=all" if {"all", "--all"}.intersection(about) else "--help"
        return COMMANDS[about[0]]([*(each for each in about[1:] if each not in {"all", "--all"}), more], environ)
    if about and about[0] not in _HELP:
        return _unknown(about[0])
    say(help_text.PROGRAM.rstrip())
    return exit_status.OK


def _unknown(name: str) -> int:
    from clusterregistry.cli.options.problems import nearest  # noqa: PLC0415 - only for mistakes

    near = nearest(name, COMMANDS)
    hint = f" Did you mean {near}?" if near else ""
    complain(
        f'clusterregistry: unknown command "{name}".{hint}',
        f"Commands: {', '.join(COMMANDS)}. See: clusterregistry --help",
    )
    return exit_status.USAGE
