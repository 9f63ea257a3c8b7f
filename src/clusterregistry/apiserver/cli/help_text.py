"""The texts of --help: short at first, everything with --help=all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clusterregistry.cli.program import Length
from clusterregistry.cli.subcommand import Listed, list_lines

if TYPE_CHECKING:
    from clusterregistry.apiserver.options import Options
    from clusterregistry.apiserver.product import Product
    from clusterregistry.cli.options.field import OptionSet

_PROGRAM = """\
SUMMARY

Usage:
  PROGRAM COMMAND [flags]

Commands:
  standalone   run the API server on its own: it brings TLS, users and storage along
  aggregated   run it behind a kube-apiserver, which knows the users and their rights
  storage      back up, restore, check and move the data (also while the server runs)
COMMANDS  version      print the version (--short: only the version)
  completion   make a script that has the shell complete commands and flags
  help         describe a command: PROGRAM help standalone (--help=all: every flag)

First steps:
  PROGRAM standalone
  kubectl --kubeconfig ~/.local/share/PROGRAM/admin.kubeconfig EXAMPLE

Exit status:
  0  done, or stopped as asked
  1  a check has found something wrong
  2  the command line, the environment or the configuration file is wrong; every mistake is named
  3  the server could not start or had to end, or a command could not do its work; a line says what to do
  130  Ctrl-C ended a command before it was done
"""

_STANDALONE = """\
Runs the API server on its own. Without any flags it works: it keeps everything in the data directory, makes its own
certificate authority and an administrator's kubeconfig at the first start, and listens on 127.0.0.1:8443.

Usage:
  PROGRAM standalone [flags]

Examples:
  # Try it: then follow the kubectl command that it prints
  PROGRAM standalone

  # Serve others: listen on all interfaces, under a name that the certificate then holds
  PROGRAM standalone --bind-address=0.0.0.0 --advertise-address=registry.example.com

  # Users with tokens; a line of the file: s3cret,jane,1,"viewers"
  # The guide docs/guides/access.md gives the group `viewers` the role `view`, to read and no more
  PROGRAM standalone --token-auth-file=tokens.csv

  # The same from the environment, or from a file with the line `token-auth-file: tokens.csv`
  PROGRAM_TOKEN_AUTH_FILE=tokens.csv PROGRAM standalone
  PROGRAM standalone --config=registry.yaml

  # See what all of these amount to, without a start
  PROGRAM standalone --config=registry.yaml --print-config

A flag counts more than its environment variable (PROGRAM_ and the name in capitals), that more than the file.
Durations: 30s, 5m, 1h30m, or plain seconds. Booleans: --flag, --flag=true, --flag=false.

"""

_AGGREGATED = """\
Runs the API server behind a kube-apiserver's aggregation layer: an APIService there leads here. The host cluster says
who users are and what they may do; roles and bindings are those of the host cluster. In a pod it finds the host
cluster by itself.

Usage:
  PROGRAM aggregated [flags]

Examples:
  # In a pod of the host cluster
  PROGRAM aggregated --bind-address=0.0.0.0 --tls-cert-file=tls.crt --tls-private-key-file=tls.key

  # Elsewhere
  PROGRAM aggregated --kubeconfig=host.kubeconfig --etcd-servers=https://etcd-0:2379

  # See what all flags, variables and files amount to, without a start
  PROGRAM aggregated --kubeconfig=host.kubeconfig --print-config

A flag counts more than its environment variable (PROGRAM_ and the name in capitals), that more than the file
that --config names. What the host cluster answers is remembered for 10 seconds, unless the flags on that say otherwise.

"""


_SERVER_COMMANDS = {"standalone": _STANDALONE, "aggregated": _AGGREGATED}

_FIRST_FLAGS = (
    "config",
    "data-dir",
    "bind-address",
    "secure-port",
    "advertise-address",
    "tls-san",
    "tls-cert-file",
    "tls-private-key-file",
    "client-ca-file",
    "token-auth-file",
    "kubeconfig",
    "etcd-servers",
    "audit-log-path",
    "logging-format",
    "v",
)
"""What a newcomer needs, as far as a command has it."""

_PRINT_CONFIG = """\
  --print-config
      Print the configuration in effect, with where each value comes from, as a file for --config; do not start.
"""


def program(product: Product, commands: Sequence[Listed]) -> str:
    """The help of the program itself; ``commands`` are those that it has besides the server's."""
    listed = "".join(f"{line}\n" for line in list_lines(commands))
    text = _PROGRAM.replace("COMMANDS", listed).replace("SUMMARY", product.summary).replace("EXAMPLE", product.example)
    return product.options.name_program(text)


def server_command(command: str, product: Product, length: Length) -> str:
    """The help of ``standalone`` or ``aggregated``."""
    return product.options.name_program(_SERVER_COMMANDS[command]) + _flags(command, product.options, length)


def _flags(command: str, known: OptionSet[Options], length: Length) -> str:
    # Late: only --help needs these.
    from clusterregistry.apiserver.options.groups import by_group  # noqa: PLC0415
    from clusterregistry.cli.options import help  # noqa: PLC0415, A004

    width, groups = help.terminal_width(), by_group(known, aggregated=command == "aggregated")
    if length is Length.ALL:
        shown = help.help_by_group({known.title(name): options for name, options in groups.items()}, width)
        return f"Instead of a start:\n{_PRINT_CONFIG}\n{shown.rstrip()}\n"
    options = {each.flag: each for group in groups.values() for each in group}
    first = [options[flag] for flag in _FIRST_FLAGS if flag in options]
    more = f"All {len(options)} flags: {known.program} {command} --help=all\n"
    return f"First flags:\n{help.short_help(first, width)}\n{_PRINT_CONFIG}\n{more}"
