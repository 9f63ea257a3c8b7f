"""The program of a product: finds the command of a command line, runs it and returns its exit status."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from clusterregistry.apiserver.cli import aggregated, help_text, standalone, storage
from clusterregistry.apiserver.product import Product
from clusterregistry.cli import exit_status, logs, version
from clusterregistry.cli.console import complain, say

_log = logging.getLogger(__name__)

Command = Callable[[Sequence[str], Mapping[str, str], Product], int]


def run(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    """Runs one command and returns its exit status. Never raises.

    No fault, of the program or of its user, shows a traceback to a user who did not ask for one.
    """
    try:
        return _dispatch(arguments, environ, product)
    except KeyboardInterrupt:
        return exit_status.OK
    except Exception as error:  # noqa: BLE001 - no fault of ours shows a traceback to a user
        if logs.are_json():
            _log.critical("an unexpected failure, a fault of ours", exc_info=True)
            return exit_status.STARTUP
        _log.debug("this is how it came about", exc_info=True)
        complain(
            f"{product.name}: unexpected {type(error).__name__}: {error}",
            "What to do: this is a fault of ours; -v tells more about it.",
        )
        return exit_status.STARTUP


def _version(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    return version.run(arguments, environ, program=product.name, version=product.version)


def _storage(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    return storage.run(arguments, environ, product.options)


def _completion(arguments: Sequence[str], _environ: Mapping[str, str], product: Product) -> int:
    # Late: a server that starts need not wait for these modules.
    from clusterregistry.apiserver.cli import completion  # noqa: PLC0415
    from clusterregistry.cli.completion import command  # noqa: PLC0415

    return command.run(arguments, lambda: completion.program(product.options))


COMMANDS: dict[str, Command] = {
    "standalone": standalone.run,
    "aggregated": aggregated.run,
    "storage": _storage,
    "version": _version,
    "completion": _completion,
}
_HELP = {"-h", "--help", "-help", "help", "--help=all"}


def _dispatch(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    if not arguments:
        complain(f"{product.name}: which command?", "", help_text.program(product).rstrip())
        return exit_status.USAGE
    name, rest = arguments[0], arguments[1:]
    if name in _HELP:
        return _help(rest, environ, product)
    if name == "--version":
        return _version(rest, environ, product)
    command = COMMANDS.get(name)
    return command(rest, environ, product) if command else _unknown(name, product)


def _help(about: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    if about and about[0] in COMMANDS:
        more = "--help=all" if {"all", "--all"}.intersection(about) else "--help"
        rest = [each for each in about[1:] if each not in {"all", "--all"}]
        return COMMANDS[about[0]]([*rest, more], environ, product)
    if about and about[0] not in _HELP:
        return _unknown(about[0], product)
    say(help_text.program(product).rstrip())
    return exit_status.OK


def _unknown(name: str, product: Product) -> int:
    from clusterregistry.cli.options.problems import nearest  # noqa: PLC0415 - only for mistakes

    near = nearest(name, COMMANDS)
    hint = f" Did you mean {near}?" if near else ""
    complain(
        f'{product.name}: unknown command "{name}".{hint}',
        f"Commands: {', '.join(COMMANDS)}. See: {product.name} --help",
    )
    return exit_status.USAGE
