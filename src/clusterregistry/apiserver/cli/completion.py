"""Describes a server program for the completion scripts of shells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.cli.storage.command_line import StorageCommand
from clusterregistry.apiserver.cli.storage.dispatch import COMMANDS
from clusterregistry.apiserver.options.groups import Options, by_group
from clusterregistry.apiserver.pki import tls
from clusterregistry.cli.completion.model import HELP, SHORT, Command, Flag, completion_command, flag_of
from clusterregistry.cli.options.field import OptionSet
from clusterregistry.cli.subcommand import Listed

_WORDS = {"authorization-mode": tuple(modes.NAMES), "tls-cipher-suites": tuple(tls.CIPHER_SUITES)}
"""What the lists of some options may hold."""

_PRINT_CONFIG = Flag(name="print-config", help="Print the configuration in effect and do not start")
_HELP_ALL = Flag(name="help", help="Show help; --help=all shows every flag")


def program(known: OptionSet[Options], more: Sequence[Listed] = ()) -> Command:
    """``more`` are the commands that the program has besides the server's."""
    commands = (
        _server(known, "standalone", "run the API server on its own"),
        _server(known, "aggregated", "run it behind a kube-apiserver"),
        Command(
            name="storage",
            help="back up, restore, check and move the data",
            flags=(HELP,),
            commands=tuple(_storage(known, each) for each in COMMANDS.values()),
        ),
        *(each.described() for each in more),
        Command(name="version", help="print the version", flags=(HELP, SHORT)),
        completion_command(),
    )
    explained = tuple(Command(name=each.name, help=each.help) for each in commands)
    about = Command(name="help", help="describe a command", commands=explained)
    return Command(name=known.program, flags=(HELP, Flag(name="version")), commands=(*commands, about))


def _server(known: OptionSet[Options], name: str, text: str) -> Command:
    options = [each for group in by_group(known, aggregated=name == "aggregated").values() for each in group]
    flags = (flag_of(each, choices=_WORDS.get(each.flag, ())) for each in options)
    return Command(name=name, help=text, flags=(_HELP_ALL, _PRINT_CONFIG, *flags))


def _storage(known: OptionSet[Options], command: StorageCommand[Any]) -> Command:
    flags = (flag_of(each) for each in command.options(known).by_flag.values())
    takes_file = command.operands.most > 0
    return Command(name=command.name, help=command.summary, flags=(HELP, *flags), takes_file=takes_file)
