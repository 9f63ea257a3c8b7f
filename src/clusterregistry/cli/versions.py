"""``clusterregistry version``."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

from clusterregistry import __version__
from clusterregistry.cli import exits, help_texts
from clusterregistry.cli.printing import complain, say


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:  # noqa: ARG001 - as every command
    if any(argument in {"-h", "--help"} for argument in arguments):
        say(help_texts.VERSION.rstrip())
        return exits.OK
    wrong = [argument for argument in arguments if argument not in {"--short", "--short=true", "--short=false"}]
    if wrong:
        complain(*(f'clusterregistry version: unknown argument "{each}"' for each in wrong), "It knows only --short.")
        return exits.USAGE
    short = bool(arguments) and arguments[-1] != "--short=false"
    say(f"v{__version__}" if short else _long())
    return exits.OK


def _long() -> str:
    machine = f"{platform.system().lower()}/{platform.machine()}"
    return f"clusterregistry v{__version__} ({platform.python_implementation()} {platform.python_version()}, {machine})"
