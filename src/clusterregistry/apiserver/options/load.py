"""All the way from a command line to options that a server can run with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterregistry.apiserver.options import host_cluster
from clusterregistry.apiserver.options.completion import CompletedOptions, complete
from clusterregistry.apiserver.options.groups import OptionSet
from clusterregistry.apiserver.options.resolution import Resolved, resolve
from clusterregistry.cli.options.problems import OptionsError


def load(
    arguments: Sequence[str], environ: Mapping[str, str], known: OptionSet, *, aggregated: bool = False
) -> CompletedOptions:
    """The options of a command line, an environment and a file, checked for standalone or for aggregated mode.

    Raises OptionsError, as ``load_with_sources``.
    """
    return load_with_sources(arguments, environ, known, aggregated=aggregated)[1]


def load_with_sources(
    arguments: Sequence[str], environ: Mapping[str, str], known: OptionSet, *, aggregated: bool = False
) -> tuple[Resolved, CompletedOptions]:
    """The same, and what was given where.

    Raises OptionsError with all that is wrong: what could be read is checked also when something else could not, so
    that an operator corrects a command line once.
    """
    resolved = resolve(arguments, environ, known, defaults=host_cluster.DEFAULTS if aggregated else None)
    try:
        completed = complete(resolved.options, environ, program=known.program, aggregated=aggregated)
    except OptionsError as error:
        raise OptionsError((*resolved.problems, *error.problems)) from None
    if resolved.problems:
        raise OptionsError(resolved.problems)
    return resolved, completed
