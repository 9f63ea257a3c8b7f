"""The command itself, for any program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from clusterregistry.cli import exit_status
from clusterregistry.cli.completion import bash, fish, zsh
from clusterregistry.cli.completion.model import SHELLS, Command
from clusterregistry.cli.console import complain, say
from clusterregistry.cli.options.problems import nearest
from clusterregistry.cli.program import asked_for

_SCRIPTS: Mapping[str, Callable[[Command], str]] = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}

_HELP = """\
Makes a script that has the shell complete commands, flags, their values and names of files.

Usage:
  {name} completion bash|zsh|fish

For this session:
  source <({name} completion bash)     # bash
  source <({name} completion zsh)      # zsh, after: autoload -U compinit; compinit
  {name} completion fish | source      # fish

For every session, from the next one on:
  # bash, where the package bash-completion is installed
  mkdir -p ~/.local/share/bash-completion/completions
  {name} completion bash > ~/.local/share/bash-completion/completions/{name}

  # bash without it
  echo 'source <({name} completion bash)' >> ~/.bashrc

  # zsh: in a directory of $fpath
  {name} completion zsh > "${{fpath[1]}}/_{name}"

  # fish
  mkdir -p ~/.config/fish/completions
  {name} completion fish > ~/.config/fish/completions/{name}.fish

Make the script anew after an upgrade.
"""


def run(arguments: Sequence[str], program: Callable[[], Command]) -> int:
    """Prints the script for a shell, and answers the exit status."""
    described = program()
    if asked_for(arguments):
        say(_HELP.format(name=described.name).rstrip())
        return exit_status.OK
    if len(arguments) != 1 or arguments[0] not in _SCRIPTS:
        complain(f"{described.name} completion: {_wrong(arguments)}", f"See: {described.name} completion --help")
        return exit_status.USAGE
    say(_SCRIPTS[arguments[0]](described).rstrip())
    return exit_status.OK


def _wrong(arguments: Sequence[str]) -> str:
    shells = ", ".join(SHELLS)
    if not arguments:
        return f"for which shell? {shells}"
    if arguments[0] in _SCRIPTS:
        return f'unexpected argument "{arguments[1]}"'
    near = nearest(arguments[0].rpartition("/")[2], SHELLS)
    return f'no script for "{arguments[0]}"; {f"did you mean {near}?" if near else f"there are {shells}"}'
