"""Finds the command, runs it, and answers its exit status; ``entry`` ends the process with it."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status, version
from clusterregistry.cli.console import complain, indented, say
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.program import guard, report_failure
from clusterregistry.crinit import flags, help_texts, settings_from_flags
from clusterregistry.crinit.commands import delete, dry_run, init, status
from clusterregistry.crinit.commands.progress import Progress
from clusterregistry.crinit.commands.session import Request, Session
from clusterregistry.crinit.errors import NotReady
from clusterregistry.crinit.settings import DEFAULT_NAMESPACE, Mode

_HELP = frozenset({"-h", "--help", "-help", "help", help_texts.EVERYTHING})


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs one command and answers the exit status. Never raises, and shows no traceback."""
    try:
        return guard("crinit", lambda: _dispatch(arguments, environ))
    except KeyboardInterrupt:
        remedy = "run the same command again to continue, or remove what was made with `crinit ... delete NAME`"
        return report_failure("crinit", OperatorError("interrupted", remedy=remedy))


def _dispatch(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    if arguments and arguments[0] in {"version", "--version"}:
        return version.run(arguments[1:], environ, program="crinit")
    if arguments and arguments[0] == "completion":
        from clusterregistry.cli.completion import command as completion_command  # noqa: PLC0415 - few want this
        from clusterregistry.crinit import completion  # noqa: PLC0415

        return completion_command.run(arguments[1:], completion.program)
    if any(argument in _HELP for argument in arguments):
        say(help_texts.about(arguments).rstrip())
        return exit_status.OK
    if not arguments:
        complain("crinit: which command?", "", help_texts.PROGRAM.rstrip())
        return exit_status.USAGE
    command, request = _request(arguments, environ)
    return _COMMANDS[command](request)


def _request(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[str, Request]:
    """Raises OptionsError with all that is wrong."""
    reading = flags.read(arguments)
    problems = list(reading.problems)
    mode, command, name, *more = [*reading.words, "", "", ""]
    # v0.0.3 and its guide have both orders: `crinit standalone init` and `crinit init standalone`.
    if mode in flags.COMMANDS and command in set(Mode):
        mode, command = command, mode
    if mode not in set(Mode):
        problems.append(f'"{mode}" is neither standalone nor aggregated' if mode else "standalone or aggregated?")
    elif command not in flags.COMMANDS:
        problems.append(f"which command: {', '.join(flags.COMMANDS)}?")
    else:
        problems += _other_problems(command, name, reading)
        # Values are looked at before anybody is called, whether the command needs them or not.
        problems += settings_from_flags.mistakes(Mode(mode), name, reading.given) if name else []
    problems += [f'unexpected argument "{word}"' for word in more if word]
    if problems:
        raise OptionsError([Problem("", each) for each in problems])
    return command, _made(Mode(mode), name, reading.given, environ)


def _made(mode: Mode, name: str, given: dict[str, str], environ: Mapping[str, str]) -> Request:
    namespace, timeout = given.get("cluster-registry-namespace", DEFAULT_NAMESPACE), settings_from_flags.seconds(given)
    return Request(mode=mode, name=name, namespace=namespace, given=given, environ=environ, timeout=timeout)


def _other_problems(command: str, name: str, reading: flags.Reading) -> list[str]:
    problems = flags.misplaced(reading, command)
    if not name:
        problems.append("the name of the registry is missing")
    if command == flags.UPGRADE and "image" not in reading.given:
        problems.append("upgrade needs --image=IMAGE")
    if "output" in reading.given:
        if reading.given["output"] != "yaml":
            problems.append(f'--output="{reading.given["output"]}": must be yaml')
        if "dry-run" not in reading.given:
            problems.append("--output needs --dry-run")
    return problems


def _init(request: Request, *, upgrade: bool = False) -> int:
    if settings_from_flags.truth(request.given, "dry-run"):
        return _dry_run(request, upgrade=upgrade)
    return _applied(request, lambda session: init.run(session, upgrade=upgrade))


def _applied(request: Request, work: Callable[[Session], None]) -> int:
    session = request.session(_progress())
    try:
        work(session)
    except OperatorError as error:
        _explain(session, error)
        return exit_status.STARTUP
    say(f"Ready. Try: kubectl get clusters --context {session.name}")
    return exit_status.OK


def _progress() -> Progress:
    """At a terminal the step that runs is shown too; the line that tells of its end takes its place."""
    if not sys.stdout.isatty():
        return Progress(say)
    width = shutil.get_terminal_size().columns - 1

    def announce(text: str) -> None:
        with contextlib.suppress(OSError):
            sys.stdout.write(f"{text[:width]}\r")
            sys.stdout.flush()

    return Progress(say, announce=announce)


def _explain(session: Session, error: OperatorError) -> None:
    """What was made, why it failed, how to clean up."""
    complain(f"crinit: {error}")
    if isinstance(error, NotReady) and error.evidence:
        complain("What the host cluster says:", *indented(error.evidence))
    complain(f"What to do: {error.remedy}")
    made, changed = session.progress.made, session.progress.changed
    if changed:
        complain("Changed in this run, and left as it is:", *indented(changed))
    if made:
        complain("Made in this run, and left as it is:", *indented(made))
        complain(f"To clean up: {session.command('delete')}")
    else:
        complain("Nothing was made in this run.")


def _dry_run(request: Request, *, upgrade: bool) -> int:
    if "host-cluster-context" in request.given or upgrade:
        manifests = dry_run.against_host(request.session(Progress(complain)), upgrade=upgrade)
    else:
        manifests = dry_run.offline(request.mode, request.name, dict(request.given))
    if request.given.get("output") == "yaml":
        say(dry_run.as_yaml(manifests).rstrip())
        complain("crinit: this output holds private keys; keep it as you keep passwords")
    else:
        say(*dry_run.as_list(manifests))
    return exit_status.OK


def _delete(request: Request) -> int:
    session = request.session(_progress())
    keep, only_tell = (
        settings_from_flags.truth(request.given, "keep-data"),
        settings_from_flags.truth(request.given, "dry-run"),
    )
    delete.run(session, keep_data=keep, dry_run=only_tell)
    return exit_status.OK


def _status(request: Request) -> int:
    return exit_status.OK if status.run(request.session(Progress(say))) else exit_status.FOUND


_COMMANDS: dict[str, Callable[[Request], int]] = {
    flags.INIT: _init,
    flags.UPGRADE: partial(_init, upgrade=True),
    flags.DELETE: _delete,
    flags.STATUS: _status,
}
