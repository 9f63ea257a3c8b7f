"""``import``: registers clusters from kubeconfigs, or from a flat file."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterregistry import __version__
from clusterregistry.apimachinery.meta.names import label_key_errors, label_value_errors
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, say
from clusterregistry.cli.options.field import OptionSet, option
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import ASSIGNMENTS, BOOLEAN, FILES, TEXT, TEXTS
from clusterregistry.cli.output import OUTPUT, TABLE, Output, rendered
from clusterregistry.cli.progress import Progress
from clusterregistry.cli.subcommand import Given, Operands, Subcommand
from clusterregistry.cli.table import table_lines
from clusterregistry.client.errors import printable
from clusterregistry.client.rest import Client
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.commands import contexts, flat_file
from clusterregistry.commands.import_plan import Action, Entry, Importer
from clusterregistry.controllers.access import clusters
from clusterregistry.controllers.registry_options import KubeconfigOptions, config_of_context

USER_AGENT = f"clusterregistry-import/{__version__}"
_WIDEST = 200
_COLUMNS = ("NAME", "FROM", "RESULT", "DETAILS")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions(KubeconfigOptions):
    """Import."""

    registry_context: str = option(
        "", kind=TEXT, help="The context of the registry in its kubeconfig.", default_shown="the current one"
    )
    from_kubeconfig: tuple[Path, ...] = option(
        (),
        kind=FILES,
        help="A kubeconfig with clusters to import, or a folder of kubeconfigs. May be repeated.",
        example="--from-kubeconfig=~/.kube/config",
    )
    context: tuple[str, ...] = option(
        (),
        kind=TEXTS,
        help="A context to import. May be repeated.",
        default_shown="all contexts",
        example="--context=prod-eu",
    )
    label: tuple[tuple[str, str], ...] = option(
        (), kind=ASSIGNMENTS, help="A label of every cluster. May be repeated.", example="--label=env=prod"
    )
    name_prefix: str = option("", kind=TEXT, help="What the name of every cluster begins with.")
    force_conflicts: bool = option(
        False, kind=BOOLEAN, help="Take over fields that other tools own, as in `kubectl apply --server-side`."
    )
    dry_run: bool = option(False, kind=BOOLEAN, help="Only show what would be created and changed.")
    output: Output = option("table", kind=OUTPUT, short="o", help="For people, or `json` or `yaml` for programs.")


HELP = """\
Registers clusters from kubeconfigs, or from a file that `PROGRAM export` has written.

From kubeconfigs, each context becomes a Cluster with its server, its authorities and a pointer to its user's
credential. Tokens, keys and passwords are never sent. A context that cannot be imported is named with the reason, and
does not stop the others. A FILE (`-` is standard input) is imported as a whole, or not at all.

Everything is read, and tried on the registry as a dry run, before the first cluster is written. Repeated, an import
changes only what has changed. Nothing is deleted.

Usage:
  PROGRAM import --from-kubeconfig FILE|DIR ... [flags]
  PROGRAM import FILE [flags]

Examples:
  # What would be imported
  PROGRAM import --from-kubeconfig ~/.kube/config --dry-run

  # Two contexts, with a label
  PROGRAM import --from-kubeconfig ~/.kube/config --context prod-eu --context prod-us --label env=prod

  # The clusters of another registry
  PROGRAM import clusters.yaml

Exit status: 0 all are imported, 1 some were refused (from kubeconfigs, the others are imported), 2 usage, 3 the import
could not begin, or ended before all was written.
"""


def _run(given: Given[ImportOptions]) -> int:
    options = given.options
    _validate(given)
    config = config_of_context(
        given.environ,
        file=options.kubeconfig,
        context=options.registry_context,
        user_agent=USER_AGENT,
        flag="--registry-context",
    )
    entries = _from_file(given.operands[0]) if given.operands else _from_kubeconfigs(options)
    is_written = asyncio.run(_import(entries, config, options, is_whole=bool(given.operands)))
    _show(entries, options, is_written=is_written)
    return _status(entries)


def _validate(given: Given[ImportOptions]) -> None:
    """Raises OptionsError."""
    options, problems = given.options, []
    if not given.operands and not options.from_kubeconfig:
        problems.append(Problem("--from-kubeconfig", "is required, unless a FILE is named"))
    if given.operands:
        others = sorted(given.flags & {"from-kubeconfig", "context", "label", "name-prefix"})
        problems += [Problem(f"--{flag}", "cannot be combined with a FILE") for flag in others]
    for key, value in options.label:
        wrong = [*label_key_errors(key), *label_value_errors(value)]
        problems += [Problem("--label", f"{key}={value}: {each}") for each in wrong]
    if problems:
        raise OptionsError(problems)


def _from_kubeconfigs(options: ImportOptions) -> list[Entry]:
    choice = contexts.Choice(contexts=options.context, name_prefix=options.name_prefix, labels=dict(options.label))
    found = contexts.find_clusters(options.from_kubeconfig, choice)
    for each in found.skipped:
        complain(f"Skipped: {printable(each)}.")
    return found.entries


def _from_file(operand: str) -> list[Entry]:
    if operand != "-":
        return flat_file.read(clusters.read_file(Path(operand)), operand)
    content = sys.stdin.buffer.read(clusters.MAX_BYTES + 1)
    if len(content) > clusters.MAX_BYTES:
        raise OperatorError(f"the input is larger than {clusters.MAX_BYTES} bytes", remedy="split it")
    return flat_file.read(content, "standard input")


async def _import(entries: Sequence[Entry], config: RestConfig, options: ImportOptions, *, is_whole: bool) -> bool:
    """Whether anything was to be written. Raises OperatorError before that.

    ``is_whole``: nothing is written if an entry is refused.
    """
    async with Client(config) as client:
        importer = await Importer.connect(client, take_over=options.force_conflicts)
        await importer.plan(entries, progress=Progress("tried", "clusters"))
        if options.dry_run or (is_whole and any(each.action is Action.REFUSED for each in entries)):
            return False
        await importer.write(entries, progress=Progress("imported", "clusters"))
        return True


# Output


def _show(entries: Sequence[Entry], options: ImportOptions, *, is_written: bool) -> None:
    if options.output != TABLE:
        say(rendered({"written": is_written, "items": [_described(each) for each in entries]}, options.output))
        return
    if entries:
        say(*table_lines(_COLUMNS, map(_row, entries)))
    for each in entries:
        if each.remedy:
            complain(f"{each.name or printable(each.file, _WIDEST)}: what to do: {printable(each.remedy)}")
    complain(_summary(entries, is_written=is_written))


def _row(entry: Entry) -> tuple[str, ...]:
    details = [entry.reason, ", ".join(entry.fields), *entry.notes]
    where = printable(entry.source or entry.file, _WIDEST)
    return entry.name or "-", where, str(entry.action), "; ".join(printable(each) for each in details if each)


def _described(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name or None,
        "context": entry.source or None,
        "file": entry.file,
        "action": str(entry.action),
        "fields": list(entry.fields),
        "reason": entry.reason or None,
        "remedy": entry.remedy or None,
        "notes": entry.notes,
    }


def _summary(entries: Sequence[Entry], *, is_written: bool) -> str:
    count = Counter(each.action for each in entries)
    parts = [f"{count[action]:,} {action}" for action in Action if count[action]]
    return f"{', '.join(parts) or 'No clusters'}{'' if is_written else ' (nothing was written)'}."


def _status(entries: Sequence[Entry]) -> int:
    actions = {each.action for each in entries}
    if Action.FAILED in actions:
        return exit_status.STARTUP
    return exit_status.FOUND if Action.REFUSED in actions else exit_status.OK


IMPORT: Subcommand[ImportOptions] = Subcommand(
    help=HELP,
    options=OptionSet(shape=ImportOptions, program="clusterregistry"),
    operands=Operands(most=1),
    run=_run,
)
