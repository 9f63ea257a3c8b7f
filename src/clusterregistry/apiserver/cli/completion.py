"""Describes a server program for the completion scripts of shells."""

from __future__ import annotations

from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.cli.storage import help_text as storage_texts
from clusterregistry.apiserver.cli.storage.command_line import shown_flag
from clusterregistry.apiserver.options import OptionSet, scope
from clusterregistry.apiserver.pki import tls
from clusterregistry.cli.completion.model import HELP, SHORT, Command, Flag, completion_command, flag_of

_WORDS = {"authorization-mode": tuple(modes.NAMES), "tls-cipher-suites": tuple(tls.CIPHER_SUITES)}
"""What the lists of some options may hold."""

_PRINT_CONFIG = Flag(name="print-config", help="Print the configuration in effect and do not start")
_HELP_ALL = Flag(name="help", help="Show help; --help=all shows every flag")
_TAKES_FILE = frozenset({"backup", "restore", "check", "stats"})


def program(known: OptionSet) -> Command:
    commands = (
        _server(known, "standalone", "run the API server on its own"),
        _server(known, "aggregated", "run it behind a kube-apiserver"),
        Command(
            name="storage",
            help="back up, restore, check and move the data",
            flags=(HELP,),
            commands=tuple(_storage(known, name) for name in storage_texts.NAMES),
        ),
        Command(name="version", help="tell the version", flags=(HELP, SHORT)),
        completion_command(),
    )
    explained = tuple(Command(name=each.name, help=each.help) for each in commands)
    about = Command(name="help", help="tell about a command", commands=explained)
    return Command(name=known.program, flags=(HELP, Flag(name="version")), commands=(*commands, about))


def _server(known: OptionSet, name: str, text: str) -> Command:
    options = [each for group in scope.by_group(known, aggregated=name == "aggregated").values() for each in group]
    flags = (flag_of(each, choices=_WORDS.get(each.flag, ())) for each in options)
    return Command(name=name, help=text, flags=(_HELP_ALL, _PRINT_CONFIG, *flags))


def _storage(known: OptionSet, name: str) -> Command:
    flags = (flag_of(each, name=shown_flag(each.flag)) for each in storage_texts.options(name, known))
    return Command(name=name, help=storage_texts.summary(name), flags=(HELP, *flags), takes_file=name in _TAKES_FILE)
