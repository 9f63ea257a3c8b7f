"""Finds the command, runs it, and returns its exit status; ``cli.entry`` ends the process with it."""

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
from clusterregistry.cli.options.sources import read_flags, resolve
from clusterregistry.cli.program import HELP_WORDS, guard, report_failure
from clusterregistry.crinit import help_texts, options, settings_from_flags
from clusterregistry.crinit.commands import delete, dry_run, init, status
from clusterregistry.crinit.commands.progress import Progress
from clusterregistry.crinit.commands.session import Request, Session
from clusterregistry.crinit.errors import NotReady
from clusterregistry.crinit.options import OPTIONS
from clusterregistry.crinit.settings import Mode


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs one command and returns the exit status. Never raises, and shows no traceback."""
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
    if HELP_WORDS.intersection(arguments):
        say(help_texts.about(arguments).rstrip())
        return exit_status.OK
    if not arguments:
        complain("crinit: which command?", "", help_texts.PROGRAM.rstrip())
        return exit_status.USAGE
    command, request = _request(arguments, environ)
    return _COMMANDS[command](request)


def _request(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[str, Request]:
    """Raises OptionsError with every mistake."""
    reading = read_flags(OPTIONS, arguments, most_operands=3)
    resolved = resolve(OPTIONS, reading, {})
    given = {each.flag: each.text for each in reading.given}
    mode, command, name, *_ = [*reading.operands, "", "", ""]
    # v0.0.3 and its guide have both orders: `crinit standalone init` and `crinit init standalone`.
    if mode in options.COMMANDS and command in set(Mode):
        mode, command = command, mode
    problems = [*resolved.problems, *_word_problems(mode, command, name), *_combination_problems(command, given)]
    # Files are read before the host cluster is called. Whether flags go together depends on the record there too.
    problems += settings_from_flags.read_files(resolved.options)[1]
    if problems:
        raise OptionsError(problems)
    return command, Request(mode=Mode(mode), name=name, given=given, options=resolved.options, environ=environ)


def _word_problems(mode: str, command: str, name: str) -> list[Problem]:
    if mode not in set(Mode):
        return [Problem("", f'"{mode}" is neither standalone nor aggregated' if mode else "standalone or aggregated?")]
    if command not in options.COMMANDS:
        return [Problem("", f"which command: {', '.join(options.COMMANDS)}?")]
    if not name:
        return [Problem("", "the name of the registry is missing")]
    return settings_from_flags.name_problems(name)


def _combination_problems(command: str, given: Mapping[str, str]) -> list[Problem]:
    if command not in options.COMMANDS:
        return []
    problems = options.misplaced(given, command)
    if command == options.UPGRADE and "image" not in given:
        problems.append(Problem("", "upgrade needs --image=IMAGE"))
    if "output" in given and "dry-run" not in given:
        problems.append(Problem("", "--output needs --dry-run"))
    return problems


def _init(request: Request, *, upgrade: bool = False) -> int:
    if request.options.run.dry_run:
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
    """At a terminal the step that runs is shown too; the line about its end replaces it."""
    if not sys.stdout.isatty():
        return Progress(say)
    width = shutil.get_terminal_size().columns - 1

    def announce(text: str) -> None:
        with contextlib.suppress(OSError):
            sys.stdout.write(f"{text[:width]}\r")
            sys.stdout.flush()

    return Progress(say, announce=announce)


def _explain(session: Session, error: OperatorError) -> None:
    """Prints why it failed, what to do, what was made, and how to clean up."""
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
    if request.options.run.output:
        say(dry_run.as_yaml(manifests).rstrip())
        complain("crinit: this output holds private keys; keep it as you keep passwords")
    else:
        say(*dry_run.as_list(manifests))
    return exit_status.OK


def _delete(request: Request) -> int:
    session = request.session(_progress())
    delete.run(session, keep_data=request.options.run.keep_data, dry_run=request.options.run.dry_run)
    return exit_status.OK


def _status(request: Request) -> int:
    return exit_status.OK if status.run(request.session(Progress(say))) else exit_status.FOUND


_COMMANDS: dict[str, Callable[[Request], int]] = {
    options.INIT: _init,
    options.UPGRADE: partial(_init, upgrade=True),
    options.DELETE: _delete,
    options.STATUS: _status,
}
