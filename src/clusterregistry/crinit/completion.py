"""Describes ``crinit`` for the completion scripts of shells."""

from __future__ import annotations

from clusterregistry.cli.completion.model import HELP, SHORT, Command, completion_command, flag_of
from clusterregistry.crinit import options
from clusterregistry.crinit.settings import Mode

_SUMMARIES = {
    options.INIT: "deploy a registry",
    options.DELETE: "remove it",
    options.STATUS: "show its state",
    options.UPGRADE: "change the image",
}


def program() -> Command:
    commands = tuple(
        Command(name=name, help=text, flags=(HELP, *map(flag_of, options.options_for(name))))
        for name, text in _SUMMARIES.items()
    )
    modes = tuple(Command(name=mode.value, help="a registry of this mode", commands=commands) for mode in Mode)
    version = Command(name="version", help="print the version", flags=(HELP, SHORT))
    return Command(name="crinit", flags=(HELP,), commands=(*modes, version, completion_command()))
