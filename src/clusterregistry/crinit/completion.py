"""``crinit`` as a shell has to know it."""

from __future__ import annotations

from clusterregistry.cli.completion.model import HELP, SHORT, Command, completion_command
from clusterregistry.cli.completion.model import Flag as ShellFlag
from clusterregistry.crinit import flags
from clusterregistry.crinit.settings import Mode, ServiceType

_HELP_TEXTS = {
    flags.INIT: "deploy a registry",
    flags.DELETE: "remove it",
    flags.STATUS: "tell what is there",
    flags.UPGRADE: "change the image",
}
_CHOICES = {"api-server-service-type": tuple(str(each.value) for each in ServiceType), "output": ("yaml",)}


def program() -> Command:
    commands = tuple(_command(name) for name in flags.COMMANDS)
    modes = tuple(Command(name=mode.value, help="a registry of this mode", commands=commands) for mode in Mode)
    version = Command(name="version", help="tell the version", flags=(HELP, SHORT))
    return Command(name="crinit", flags=(HELP,), commands=(*modes, version, completion_command()))


def _command(name: str) -> Command:
    taken = (
        ShellFlag(name=flag.name, help=flag.help, metavar=flag.value, choices=_CHOICES.get(flag.name, ()))
        for flag in flags.FLAGS
        if name in flag.commands
    )
    return Command(name=name, help=_HELP_TEXTS.get(name, ""), flags=(HELP, *taken))
