"""``storage stats``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from clusterregistry.apiserver.cli.storage.command_line import StorageCommand
from clusterregistry.apiserver.product import Product
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import say
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import choice
from clusterregistry.cli.progress import counted, shown_bytes
from clusterregistry.cli.subcommand import Operands

if TYPE_CHECKING:
    from clusterregistry.apiserver.storage.sqlite.stats import Measures


_HELP = """\
Shows how many objects there are, which revisions can be read, and how large the files are. The server may be running.

Usage:
  PROGRAM storage stats [FILE] [flags]

Examples:
  PROGRAM storage stats
  PROGRAM storage stats -o json
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsOptions:
    output: Literal["text", "json"] = option(
        "text", kind=choice("text", "json"), short="o", help="For people, or for programs (-o json)."
    )


def _run(arguments: Sequence[str], environ: Mapping[str, str], product: Product) -> int:
    """Raises OptionsError, and StorageUnavailable when the file cannot be read."""
    given = COMMAND.read(arguments, environ, product.options)
    from clusterregistry.apiserver.storage.sqlite import stats  # noqa: PLC0415 - not for a mistyped flag

    path = given.file
    measures = stats.measure(path)
    say(json.dumps(_as_json(path, measures), indent=2) if given.own.output == "json" else _as_text(path, measures))
    return exit_status.OK


def _as_text(path: Path, measures: Measures) -> str:
    return "\n".join(f"{name:<18}{text}".rstrip() for name, text in _lines(path, measures))


def _lines(path: Path, measures: Measures) -> Iterator[tuple[str, str]]:
    yield "File:", f"{path} (format {measures.format})"
    yield "Size:", f"{shown_bytes(measures.file_bytes)}, of that free: {shown_bytes(measures.free_bytes)}"
    yield "Write-ahead log:", shown_bytes(measures.wal_bytes)
    total = sum(measures.objects.values())
    yield "Objects:", f"{total:,} ({shown_bytes(measures.object_bytes)})"
    for prefix, count in measures.objects.items():
        yield "", f"{count:,} {prefix.strip('/')}"
    yield "Revision:", f"{measures.revision}"
    yield "Oldest readable:", f"{measures.oldest_revision}"
    yield "Log:", f"{counted(measures.rows, 'revision')}, of that history: {measures.rows - total:,}"


def _as_json(path: Path, measures: Measures) -> dict[str, Any]:
    return {
        "file": str(path),
        "format": measures.format,
        "fileBytes": measures.file_bytes,
        "freeBytes": measures.free_bytes,
        "walBytes": measures.wal_bytes,
        "objects": sum(measures.objects.values()),
        "objectsByPrefix": dict(measures.objects),
        "objectBytes": measures.object_bytes,
        "revision": measures.revision,
        "oldestReadableRevision": measures.oldest_revision,
        "revisionsInLog": measures.rows,
    }


COMMAND = StorageCommand(
    name="stats",
    summary="show how much is in it",
    help=_HELP,
    own=StatsOptions,
    operands=Operands(most=1),
    interrupted="run it again",
    run=_run,
)
