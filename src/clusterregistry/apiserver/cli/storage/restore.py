"""``storage restore FILE``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from clusterregistry.apiserver.cli.storage import command_line
from clusterregistry.apiserver.cli.storage.command_line import Operands
from clusterregistry.apiserver.cli.storage.stored_object import ObjectCheck
from clusterregistry.apiserver.options.groups import OptionSet
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.cli import exit_status
from clusterregistry.cli.console import say
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import BOOLEAN
from clusterregistry.cli.progress import Progress, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    force: bool = option(
        False, kind=BOOLEAN, help="Restore FILE even if objects in it cannot be read; the server sets these aside."
    )


_AS_IT_IS = (
    "If there is none, --force restores this one: the server sets aside what cannot be read, and serves the rest"
)


def run(arguments: Sequence[str], environ: Mapping[str, str], known: OptionSet) -> int:
    """Raises OptionsError, and StorageUnavailable when nothing was restored."""
    wanted = Operands(least=1, most=1, missing="name the FILE that is to be restored")
    given = command_line.read(arguments, environ, known, own=RestoreOptions, operands=wanted)
    from clusterregistry.apiserver.storage.sqlite import integrity, restore, stats  # noqa: PLC0415 - not for a mistyped flag

    (backup,) = given.operands
    checked = ObjectCheck()
    value_problem = _any_value if given.own.force else checked
    try:
        restored = restore.restore(
            backup,
            given.database,
            now=datetime.now(UTC),
            check=partial(
                integrity.problems, full=True, value_problem=value_problem, progress=Progress("checked", "revisions")
            ),
            progress=Progress("restored", "pages of the database"),
        )
    except StorageUnavailable as error:
        if not checked.found:
            raise
        raise StorageUnavailable(str(error), remedy=f"{error.remedy}. {_AS_IT_IS}") from None
    holds = stats.measure(given.database)
    say(f"Restored {counted(sum(holds.objects.values()), 'object')} to {given.database}.")
    if restored.kept:
        say(f"The database that was there is kept as {restored.kept}.")
    say(
        f"Revisions go on behind {restored.revision}: programs that watch will list again by themselves.",
        *_next_steps(certificates=(given.data_dir / "ca.key").exists()),
    )
    return exit_status.OK


def _any_value(_key: str, _value: bytes) -> str:
    """The server looks at each value itself."""
    return ""


def _next_steps(*, certificates: bool) -> list[str]:
    if certificates:
        return ["Next: start the server."]
    return [
        "Next: put ca.crt and ca.key from the backup into the same directory, then start the server.",
        "      Without them it makes a new authority, and every client needs new certificates.",
    ]
