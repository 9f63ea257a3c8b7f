"""``kubeconfig``: makes one kubeconfig of registered clusters, or merges them into that of the user."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from clusterregistry import __version__
from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.api.clusterregistry.kubeconfigs import NoKubeconfigError, kubeconfig_of, merged
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apimachinery.meta.selectors import SelectorError
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, say
from clusterregistry.cli.options.field import OptionSet, option
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import BOOLEAN, FILE, TEXT, choice
from clusterregistry.cli.output import rendered
from clusterregistry.cli.subcommand import Given, Operands, Subcommand
from clusterregistry.client import kubeconfig
from clusterregistry.client.errors import (
    BadRequestError,
    ClientError,
    ConfigError,
    ForbiddenError,
    NotFoundError,
    printable,
)
from clusterregistry.client.kubeconfig_file import SECRET, locked, replace, replace_content
from clusterregistry.client.rest import Client, GroupVersionResource, Object
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.commands.kubeconfig_merge import CollisionError, Merged, merge, renamed
from clusterregistry.controllers.access.clusters import from_registry
from clusterregistry.controllers.cluster_client import served_version
from clusterregistry.controllers.observer.endpoint import source_addresses
from clusterregistry.controllers.registry_options import RegistryOptions, registry_config

USER_AGENT = f"clusterregistry-kubeconfig/{__version__}"
MAX_NAMES = 1000
CONCURRENCY = 16
"""Kubeconfigs that are fetched at a time."""

_ANOTHER = "name another file"
_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigCommandOptions(RegistryOptions):
    """Kubeconfig."""

    selector: str = option(
        "", kind=TEXT, short="l", help="Clusters by their labels, in the place of NAMEs.", example="--selector=env=prod"
    )
    all: bool = option(False, kind=BOOLEAN, help="All clusters, in the place of NAMEs.")
    merge_into: Path | None = option(
        None,
        kind=FILE,
        help="A kubeconfig to merge the clusters into. Entries of others stay as they are; a backup is kept beside it.",
        example="--merge-into=~/.kube/config",
    )
    out: Path | None = option(
        None, kind=FILE, help="A new file to write, which only its owner can read.", default_shown="standard output"
    )
    name_prefix: str = option("", kind=TEXT, help="What the name of every entry begins with.")
    output: Literal["yaml", "json"] = option(
        "yaml",
        kind=choice("yaml", "json"),
        short="o",
        help="The form of the kubeconfig; with --merge-into, that of a report for programs.",
    )


HELP = """\
Makes a kubeconfig of registered clusters: their addresses, authorities and exec entries. It holds no secret.

The registry chooses the address of a named cluster by the network of this machine as it sees it. For a selection the
clusters are listed once, and the addresses chosen here, by those that this machine has on the way to each cluster.
A cluster without an address for this machine is named with the reason, and does not stop the others.

Usage:
  PROGRAM kubeconfig NAME... [flags]
  PROGRAM kubeconfig -l SELECTOR | --all [flags]

Examples:
  # One cluster
  PROGRAM kubeconfig paris-1 > paris-1.kubeconfig

  # All clusters in production, as contexts of the usual kubeconfig
  PROGRAM kubeconfig -l env=prod --merge-into ~/.kube/config

Exit status: 0 all are made, 1 some clusters have no kubeconfig and the others are made, 2 usage, 3 nothing was made.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A kubeconfig of the clusters, and the reasons why others have none."""

    document: Object
    refused: Sequence[str]


def _run(given: Given[KubeconfigCommandOptions]) -> int:
    options = given.options
    _validate(given)
    config = registry_config(options, given.environ, user_agent=USER_AGENT)
    found = asyncio.run(_fetch(config, given.operands)) if given.operands else _listed(config, options.selector)
    made = Made(document=renamed(found.document, options.name_prefix), refused=found.refused)
    for each in made.refused[:_SHOWN]:
        complain(f"Skipped: {each}.")
    if len(made.refused) > _SHOWN:
        complain(f"Skipped: {len(made.refused) - _SHOWN:,} more.")
    if not made.document["contexts"]:
        raise OperatorError(
            "no cluster has a kubeconfig for you" if made.refused else "no cluster is selected",
            remedy="see which there are, with their labels and servers: `kubectl get clusters --show-labels`",
        )
    _give(made, given)
    return exit_status.FOUND if made.refused else exit_status.OK


def _validate(given: Given[KubeconfigCommandOptions]) -> None:
    """Raises OptionsError."""
    options, problems = given.options, []
    if sum((bool(given.operands), bool(options.selector), options.all)) != 1:
        problems.append(Problem("", "name clusters, or select them with --selector or --all: one of the three"))
    if options.merge_into and options.out:
        problems.append(Problem("--out", "cannot be combined with --merge-into"))
    try:
        parse_label_selector(options.selector)
    except SelectorError as error:
        problems.append(Problem("--selector", str(error)))
    if problems:
        raise OptionsError(problems)


# Input


def _listed(config: RestConfig, selector: str) -> Made:
    """The kubeconfig of all clusters that are selected, made here. Raises OperatorError."""
    made, refused = [], []
    for cluster in asyncio.run(from_registry(config, name="", selector=selector)):
        try:
            made.append(kubeconfig_of(cluster, source_addresses))
        except NoKubeconfigError as error:
            refused.append(f"{printable(str(cluster['metadata'].get('name')), 253)}: {error}")
    return Made(document=merged(made), refused=refused)


async def _fetch(config: RestConfig, names: Sequence[str]) -> Made:
    """The kubeconfigs of named clusters, by the registry. Raises OperatorError if one is missing or forbidden."""
    try:
        async with Client(config) as client:
            clusters = client.resource(GroupVersionResource(GROUP, await served_version(client), "clusters"))
            slots, refused = asyncio.Semaphore(CONCURRENCY), []

            async def fetch(name: str) -> Object | None:
                async with slots:
                    try:
                        return await clusters.get(name, subresource="kubeconfig")
                    except BadRequestError as error:
                        refused.append(f"{printable(name, 253)}: {printable(str(error), 300)}")
                        return None

            unique = list(dict.fromkeys(names))
            found = await asyncio.gather(*map(fetch, unique))
    except ClientError as error:
        raise OperatorError(printable(str(error), 400), remedy=_remedy(error)) from None
    made = [each for each in found if each is not None]
    if not all(isinstance(each.get(plural), list) for each in made for plural in kubeconfig.KINDS):
        raise OperatorError(
            f"{config.server} answers with something that is no kubeconfig",
            remedy="check that the kubeconfig is that of the registry, and that no proxy changes its answers",
        )
    return Made(document=merged(made), refused=refused)


def _remedy(error: ClientError) -> str:
    if isinstance(error, NotFoundError):
        return "see which clusters there are: `kubectl get clusters`"
    if isinstance(error, ForbiddenError):
        return "ask the registry's administrator for the right get on clusters/kubeconfig: the role view has it"
    return "check that the kubeconfig is that of the registry, and that the registry runs"


# Output


def _give(made: Made, given: Given[KubeconfigCommandOptions]) -> None:
    options = given.options
    if options.merge_into is not None:
        _merge_into(options.merge_into.expanduser(), made, given)
    elif options.out is not None:
        _write_new(options.out.expanduser(), made.document, options)
    else:
        say(rendered(made.document, options.output))


def _write_new(file: Path, document: Object, options: KubeconfigCommandOptions) -> None:
    """Raises OperatorError."""
    with locked(file, another=_ANOTHER):
        if file.exists():
            raise OperatorError(
                f"there is a file {file} already", remedy="name another, or keep what is in it with --merge-into"
            )
        content = f"{rendered(document, options.output)}\n".encode()
        replace_content(file, content, mode=SECRET, another=_ANOTHER)
    complain(f"{_counted(document)} in {file}. Next: {_next_step(file, document)}")


def _merge_into(file: Path, made: Made, given: Given[KubeconfigCommandOptions]) -> None:
    """Raises OperatorError; then the file is as before."""
    with locked(file, another=_ANOTHER):
        before = _read(file)
        try:
            result = merge(before or {}, made.document)
        except CollisionError as error:
            raise OperatorError(
                f"{file} {error}",
                remedy="rename those (`kubectl config rename-context`), or give the new ones other names: "
                "--name-prefix=PREFIX",
            ) from None
        backup = None
        if result.document != before:
            backup = _back_up(file) if before is not None else None
            replace(file, result.document, mode=SECRET, another=_ANOTHER)
    if "output" in given.flags:
        report = _report(file, result, backup=backup) | {"skipped": list(made.refused)}
        say(rendered(report, given.options.output))
        return
    parts = {"added": result.added, "changed": result.changed, "unchanged": result.unchanged}
    counts = ", ".join(f"{len(names):,} {what}" for what, names in parts.items() if names)
    say(f"{file}: {counts}.", *([f"Former content: {backup}"] if backup else []))
    say(f"Next: {_next_step(file, made.document)}")


def _read(file: Path) -> Object | None:
    try:
        return kubeconfig.read_document(file)
    except ConfigError as error:
        raise OperatorError(str(error), remedy=f"correct the file, or {_ANOTHER}") from None


def _back_up(file: Path) -> Path:
    """Keeps the former content beside the file."""
    backup = file.with_name(file.name + ".backup")
    replace_content(backup, file.read_bytes(), mode=SECRET, another=_ANOTHER)
    return backup


def _report(file: Path, result: Merged, *, backup: Path | None) -> dict[str, Any]:
    """What was done, for programs."""
    return {
        "file": str(file),
        "backup": None if backup is None else str(backup),
        "added": list(result.added),
        "changed": list(result.changed),
        "unchanged": list(result.unchanged),
    }


def _next_step(file: Path, document: Object) -> str:
    context = printable(str(document["contexts"][0].get("name")), 253)
    return shlex.join(["kubectl", f"--kubeconfig={file}", f"--context={context}", "get", "namespaces"])


def _counted(document: Object) -> str:
    count = len(document["contexts"])
    return f"{count:,} cluster{'s' if count != 1 else ''}"


KUBECONFIG: Subcommand[Any] = Subcommand(
    help=HELP,
    options=OptionSet(shape=KubeconfigCommandOptions, program="clusterregistry"),
    operands=Operands(most=MAX_NAMES),
    run=_run,
)
