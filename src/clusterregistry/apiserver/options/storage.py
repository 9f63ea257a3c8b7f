"""Options about where data is kept."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clusterregistry.apiserver.storage.etcd.settings import DEFAULT_PREFIX
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import BOOLEAN, DIRECTORY, DURATION, FILE, TEXT, WORDS, choice


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """Storage."""

    data_dir: Path | None = option(
        None,
        kind=DIRECTORY,
        help="Where the server keeps all it has: database, certificate authority, admin.kubeconfig. It is made at the "
        "first start. One server process at a time.",
        default_shown="$XDG_DATA_HOME/PROGRAM, else ~/.local/share/PROGRAM",
        example="--data-dir=/var/lib/PROGRAM",
    )
    storage_backend: Literal["", "sqlite", "etcd3"] = option(
        "",
        kind=choice("sqlite", "etcd3"),
        help="What keeps the objects: `sqlite`, one file in the data directory for one server process, or `etcd3`, an "
        "etcd 3.4 or newer for any number of servers.",
        default_shown="sqlite, or etcd3 when --etcd-servers is given",
    )
    etcd_servers: tuple[str, ...] = option(
        (),
        kind=WORDS,
        help="The members of the etcd to keep objects in, as URLs. One that does not answer is passed over.",
        default_shown="no etcd",
        example="--etcd-servers=https://etcd-1.example.com:2379,https://etcd-2.example.com:2379",
    )
    etcd_prefix: str = option(
        DEFAULT_PREFIX,
        kind=TEXT,
        help="What all our keys in etcd begin with. Servers with the same prefix in the same etcd are replicas of each "
        "other.",
    )
    etcd_cafile: Path | None = option(
        None,
        kind=FILE,
        help="The authority that has signed etcd's certificates.",
        default_shown="the authorities that the system trusts",
    )
    etcd_certfile: Path | None = option(
        None,
        kind=FILE,
        help="Our client certificate for etcd; goes together with --etcd-keyfile.",
        default_shown="no certificate",
    )
    etcd_keyfile: Path | None = option(
        None, kind=FILE, help="The key of our client certificate for etcd.", default_shown="no key"
    )
    etcd_username: str = option(
        "",
        kind=TEXT,
        help="Our user in an etcd with authentication; goes together with --etcd-password-file.",
        default_shown="no user",
    )
    etcd_password_file: Path | None = option(
        None,
        kind=FILE,
        help="A file with the user's password. It is read again at each sign-in.",
        default_shown="no password",
    )
    etcd_compaction_interval: float = option(
        300.0,
        kind=DURATION,
        help="How long etcd keeps history for watches to resume in, and how often it is shortened. One replica at a "
        "time does it. 0 leaves it to others.",
        example="--etcd-compaction-interval=1h",
    )
    watch_cache: bool = option(
        True,
        kind=BOOLEAN,
        help="Serve lists and watches from memory. This version cannot do without: only true is accepted.",
    )
