"""Options of the server: each stated once, as a field of a frozen dataclass group, one group a file.

``cli.options`` reads them from flags, environment and file, and renders --help and docs/reference/flags.md. The path of
an option: ``cli.options.sources`` → ``Options`` → ``completion`` → ``CompletedOptions``, the only type that the server
accepts. ``load`` covers the whole path.

This package reads the command line, the environment and the configuration file, and checks whether named files exist.
It must not open sockets, create files, print, or exit.
"""

from clusterregistry.apiserver.options.completion import CompletedOptions, complete, load
from clusterregistry.apiserver.options.groups import Options
from clusterregistry.cli.options.problems import OptionsError, Problem

__all__ = ["CompletedOptions", "Options", "OptionsError", "Problem", "complete", "load"]
