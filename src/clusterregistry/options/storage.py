"""Options about where data is kept."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clusterregistry.options.fields import option
from clusterregistry.options.kinds import BOOLEAN, DIRECTORY, choice


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """Storage."""

    data_dir: Path | None = option(
        None,
        kind=DIRECTORY,
        help="Where the server keeps all it has: database, certificate authority, admin.kubeconfig. It is made at the "
        "first start. One server process at a time.",
        default_shown="$XDG_DATA_HOME/clusterregistry, else ~/.local/share/clusterregistry",
        example="--data-dir=/var/lib/clusterregistry",
    )
    storage_backend: Literal["sqlite"] = option(
        "sqlite",
        kind=choice("sqlite", later=("etcd3",)),
        help="What keeps the objects: `sqlite`, one file in the data directory.",
    )
    watch_cache: bool = option(
        True,
        kind=BOOLEAN,
        help="Serve lists and watches from memory. This version cannot do without: only true is accepted.",
    )
