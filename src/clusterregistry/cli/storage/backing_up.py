"""``clusterregistry storage backup FILE``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterregistry.cli import exits
from clusterregistry.cli.printing import say
from clusterregistry.cli.storage import command_lines
from clusterregistry.cli.storage.command_lines import Operands
from clusterregistry.cli.storage.progress import Progress, counted, shown_bytes
from clusterregistry.options.fields import option
from clusterregistry.options.kinds import BOOLEAN


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupOptions:
    force: bool = option(False, kind=BOOLEAN, help="Replace FILE if it is there.")


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Raises OptionsError, and StorageUnavailable when there is no backup."""
    wanted = Operands(least=1, most=1, missing="name the FILE that the backup is to be written to")
    given = command_lines.read(arguments, environ, own=BackupOptions, operands=wanted)
    from clusterregistry.storage.sqlite import backing_up, measuring  # noqa: PLC0415 - not for a mistyped flag

    (target,) = given.operands
    backing_up.back_up(
        given.database, target, overwrite=given.own.force, progress=Progress("backed up", "pages of the database")
    )
    holds = measuring.measure(target)
    say(
        f"Backed up {counted(sum(holds.objects.values()), 'object')} at revision {holds.revision} "
        f"to {target} ({shown_bytes(holds.file_bytes)}).",
        f"Next: keep it on another machine, with ca.crt and ca.key from {given.data_dir}.",
        f"      To put it back: clusterregistry storage restore {shlex.quote(str(target))}",
    )
    return exits.OK
