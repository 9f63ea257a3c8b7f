"""Options of the server: each stated once, as a field of a frozen dataclass group, one group a file.

Flags, environment variables, the configuration file, ``--help`` and docs/reference/flags.md are all generated from
the fields. The way of an option: ``flags``/``environment``/``config_file`` → ``resolving`` → ``Options`` →
``completing`` → ``CompletedOptions``, the only type that the server accepts. ``load`` goes all of it.

This package reads the command line, the environment and the configuration file, and looks whether named files exist.
It must not open sockets, make files, print, or exit.
"""

from clusterregistry.apiserver.options.completion import CompletedOptions, complete
from clusterregistry.apiserver.options.groups import Options, OptionSet
from clusterregistry.apiserver.options.load import load
from clusterregistry.cli.options.problems import OptionsError, Problem

__all__ = ["CompletedOptions", "OptionSet", "Options", "OptionsError", "Problem", "complete", "load"]
