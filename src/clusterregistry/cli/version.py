"""The command ``version`` of every program."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

from clusterregistry import __version__
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, say
from clusterregistry.cli.program import asked_for

_HELP = """\
Tells the version of this program.

Usage:
  {program} version [--short]

Flags:
  --short   only the version, for scripts
"""


def run(
    arguments: Sequence[str],
    environ: Mapping[str, str],  # noqa: ARG001 - as every command
    *,
    program: str,
    version: str = __version__,
) -> int:
    if asked_for(arguments):
        say(_HELP.format(program=program).rstrip())
        return exit_status.OK
    wrong = [argument for argument in arguments if argument not in {"--short", "--short=true", "--short=false"}]
    if wrong:
        complain(*(f'{program} version: unknown argument "{each}"' for each in wrong), "It knows only --short.")
        return exit_status.USAGE
    short = bool(arguments) and arguments[-1] != "--short=false"
    say(f"v{version}" if short else _long(program, version))
    return exit_status.OK


def _long(program: str, version: str) -> str:
    machine = f"{platform.system().lower()}/{platform.machine()}"
    return f"{program} v{version} ({platform.python_implementation()} {platform.python_version()}, {machine})"
