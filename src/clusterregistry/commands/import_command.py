"""``import``: registers clusters from kubeconfigs."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterregistry import __version__
from clusterregistry.apimachinery.meta.names import label_key_errors, label_value_errors
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import complain, say
from clusterregistry.cli.options.field import OptionSet, option
from clusterregistry.cli.options.problems import OptionsError, Problem
from clusterregistry.cli.options.value_types import ASSIGNMENTS, BOOLEAN, FILES, TEXT, TEXTS
from clusterregistry.cli.output import OUTPUT, TABLE, Output, rendered
from clusterregistry.cli.progress import Progress
from clusterregistry.cli.subcommand import Given, Operands, Subcommand
from clusterregistry.cli.table import table_lines
from clusterregistry.client.rest import Client
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.commands import contexts
from clusterregistry.commands.import_plan import Action, Entry, Importer
from clusterregistry.controllers.registry_options import KubeconfigOptions, config_of_context

USER_AGENT = f"clusterregistry-import/{__version__}"
_COLUMNS = ("NAME", "CONTEXT", "RESULT", "DETAILS")


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
Registers clusters from kubeconfigs: each context becomes a Cluster with its server, its authorities and a pointer to
its user's credential. Tokens, keys and passwords are never sent. Repeated, it changes only what has changed.

Everything is read, and tried on the registry as a dry run, before the first cluster is written. A context that cannot
be imported is named with the reason, and does not stop the others. Nothing is deleted.

Usage:
  PROGRAM import --from-kubeconfig FILE|DIR ... [flags]

Examples:
  # What would be imported
  PROGRAM import --from-kubeconfig ~/.kube/config --dry-run

  # Two contexts, with a label
  PROGRAM import --from-kubeconfig ~/.kube/config --context prod-eu --context prod-us --label env=prod

Exit status: 0 all are imported, 1 some were refused and the others are imported, 2 usage, 3 the import could not begin,
or ended before all was written.
"""


def _run(given: Given[ImportOptions]) -> int:
    options = given.options
    _validate(options)
    choice = contexts.Choice(contexts=options.context, name_prefix=options.name_prefix, labels=dict(options.label))
    config = config_of_context(
        given.environ,
        file=options.kubeconfig,
        context=options.registry_context,
        user_agent=USER_AGENT,
        flag="--registry-context",
    )
    found = contexts.find_clusters(options.from_kubeconfig, choice)
    for each in found.skipped:
        complain(f"Skipped: {each}.")
    asyncio.run(_import(found.entries, config, options))
    _show(found.entries, options)
    return _status(found.entries)


def _validate(options: ImportOptions) -> None:
    """Raises OptionsError."""
    problems = []
    if not options.from_kubeconfig:
        problems.append(Problem("--from-kubeconfig", "is required: a kubeconfig, or a folder of kubeconfigs"))
    for key, value in options.label:
        wrong = [*label_key_errors(key), *label_value_errors(value)]
        problems += [Problem("--label", f"{key}={value}: {each}") for each in wrong]
    if problems:
        raise OptionsError(problems)


async def _import(entries: Sequence[Entry], config: RestConfig, options: ImportOptions) -> None:
    """Raises OperatorError before anything is written."""
    async with Client(config) as client:
        importer = await Importer.connect(client, take_over=options.force_conflicts)
        await importer.plan(entries, progress=Progress("tried", "clusters"))
        if not options.dry_run:
            await importer.write(entries, progress=Progress("imported", "clusters"))


# Output


def _show(entries: Sequence[Entry], options: ImportOptions) -> None:
    if options.output != TABLE:
        say(rendered({"dryRun": options.dry_run, "items": [_described(each) for each in entries]}, options.output))
        return
    if entries:
        say(*table_lines(_COLUMNS, map(_row, entries)))
    for each in entries:
        if each.remedy:
            complain(f"{each.name or each.file}: what to do: {each.remedy}")
    complain(_summary(entries, is_dry_run=options.dry_run))


def _row(entry: Entry) -> tuple[str, ...]:
    details = [entry.reason, ", ".join(entry.fields), *entry.notes]
    return entry.name or "-", entry.source or entry.file, str(entry.action), "; ".join(filter(None, details))


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


def _summary(entries: Sequence[Entry], *, is_dry_run: bool) -> str:
    count = Counter(each.action for each in entries)
    parts = [f"{count[action]:,} {action}" for action in Action if count[action]]
    return f"{', '.join(parts) or 'No clusters'}{' (dry run: nothing was written)' if is_dry_run else ''}."


def _status(entries: Sequence[Entry]) -> int:
    actions = {each.action for each in entries}
    if Action.FAILED in actions:
        return exit_status.STARTUP
    return exit_status.FOUND if Action.REFUSED in actions else exit_status.OK


IMPORT: Subcommand[ImportOptions] = Subcommand(
    help=HELP,
    options=OptionSet(shape=ImportOptions, program="clusterregistry"),
    operands=Operands(),
    run=_run,
)
