"""``export``: writes the clusters of a registry as a flat file."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from clusterregistry import __version__
from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apimachinery.meta.selectors import SelectorError
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain
from clusterregistry.cli.options.field import OptionSet, option
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import BOOLEAN, TEXT
from clusterregistry.cli.progress import counted
from clusterregistry.cli.subcommand import Given, Operands, Subcommand
from clusterregistry.client.errors import ClientError, printable
from clusterregistry.client.rest import Client, ListOptions, Object, items, metadata
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.commands import flat_file
from clusterregistry.controllers.access.clusters import MAX_CLUSTERS
from clusterregistry.controllers.cluster_client import ClusterClient, served_version
from clusterregistry.controllers.registry_options import RegistryOptions, registry_config

USER_AGENT = f"clusterregistry-export/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions(RegistryOptions):
    """Export."""

    selector: str = option(
        "", kind=TEXT, short="l", help="Which clusters to export, by their labels.", example="--selector=env=prod"
    )
    header: bool = option(
        True,
        kind=BOOLEAN,
        help="Begin with comments that tell the revision, the time and the digest. Without them, equal clusters give "
        "equal files.",
        example="--header=false",
    )


HELP = """\
Writes the clusters of a registry to standard output, as YAML for `PROGRAM import FILE` and `kubectl apply -f FILE`:
names, labels, annotations and specs, without status and without what a server fills in.

Equal clusters give equal bytes, but for the comments at the beginning. The file is not signed.

Usage:
  PROGRAM export [-l SELECTOR] [flags] > FILE

Examples:
  # A copy of all clusters
  PROGRAM export > clusters.yaml

  # For version control: no line changes unless a cluster does
  PROGRAM export --header=false > clusters.yaml

Exit status: 0 written, 2 usage, 3 the clusters could not be read or written.
"""


def _run(given: Given[ExportOptions]) -> int:
    options = given.options
    try:
        parse_label_selector(options.selector)
    except SelectorError as error:
        raise OptionsError([Problem("--selector", str(error))]) from None
    config = registry_config(options, given.environ, user_agent=USER_AGENT)
    found, revision = asyncio.run(_read(config, options.selector))
    content = flat_file.documents(found)
    if options.header:
        taken = times.render(datetime.fromtimestamp(time.time(), UTC))
        header = flat_file.Header(revision=revision, taken=taken, selector=printable(options.selector))
        content = flat_file.with_header(content, header, count=len(found))
    _write(content)
    complain(f"{counted(len(found), 'cluster')} exported (resource version: {revision}).")
    return exit_status.OK


async def _read(config: RestConfig, selector: str) -> tuple[list[Object], str]:
    """The clusters, all as of one revision. Raises OperatorError."""
    try:
        async with Client(config) as client:
            clusters = ClusterClient(client, version=await served_version(client))
            listed = await clusters.resource.list_all(ListOptions(label_selector=selector), max_items=MAX_CLUSTERS)
    except ClientError as error:
        message = f"the clusters cannot be read from {config.server}: {printable(str(error), 400)}"
        raise OperatorError(message, remedy="check the address, and the right to list clusters") from None
    return [clusters.interpret(each) for each in items(listed)], str(metadata(listed).get("resourceVersion", ""))


def _write(content: bytes) -> None:
    """Raises OperatorError: a file that is not complete must not pass for a copy."""
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        return  # as with `head`: the reader has what it wants
    except OSError as error:
        message = f"the clusters cannot be written: {error.strerror or error}"
        raise OperatorError(message, remedy="free some space, or write to another file") from None


EXPORT: Subcommand[ExportOptions] = Subcommand(
    help=HELP,
    options=OptionSet(shape=ExportOptions, program="clusterregistry"),
    operands=Operands(),
    run=_run,
)
