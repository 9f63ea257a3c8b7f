"""Options about storage: the group, its mistakes, and the settings of etcd."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from clusterregistry.apiserver.options import checks
from clusterregistry.apiserver.storage.etcd.settings import DEFAULT_PREFIX, EtcdSettings
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.problems import Problem
from clusterregistry.cli.options.value_types import BOOLEAN, DIRECTORY, DURATION, FILE, TEXT, WORDS, choice


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """Storage."""

    data_dir: Path | None = option(
        None,
        kind=DIRECTORY,
        help="The directory of all data: database, certificate authority, admin.kubeconfig. It is made at the first "
        "start. One server process at a time.",
        default_shown="$XDG_DATA_HOME/PROGRAM, else ~/.local/share/PROGRAM",
        example="--data-dir=/var/lib/PROGRAM",
    )
    storage_backend: Literal["", "sqlite", "etcd3"] = option(
        "",
        kind=choice("sqlite", "etcd3"),
        help="Where objects are stored: `sqlite`, one file in the data directory for one server process, or `etcd3`, "
        "an etcd 3.4 or newer for any number of servers.",
        default_shown="sqlite, or etcd3 when --etcd-servers is given",
    )
    etcd_servers: tuple[str, ...] = option(
        (),
        kind=WORDS,
        help="The members of the etcd that stores the objects, as URLs. One that does not answer is skipped.",
        default_shown="no etcd",
        example="--etcd-servers=https://etcd-1.example.com:2379,https://etcd-2.example.com:2379",
    )
    etcd_prefix: str = option(
        DEFAULT_PREFIX,
        kind=TEXT,
        help="The prefix of all our keys in etcd. Servers with the same prefix in the same etcd are replicas of each "
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
        "time does it. 0 turns it off.",
        example="--etcd-compaction-interval=1h",
    )
    event_ttl: float = option(
        3600.0,
        kind=DURATION,
        help="How long an event is kept after it was last written. It is removed within a sixtieth of that time, or a "
        "minute, afterwards.",
        example="--event-ttl=24h",
    )
    watch_cache: bool = option(
        True,
        kind=BOOLEAN,
        help="Serve lists and watches from memory. Only true is supported.",
    )


_SERVERS = "--etcd-servers"
_SCHEMES = ("http", "https")


def etcd_settings(options: StorageOptions) -> EtcdSettings | None:
    """Returns how to reach etcd; None when SQLite keeps the objects. For options without problems."""
    if not options.etcd_servers:
        return None
    servers = [_split(server) for server in options.etcd_servers]
    return EtcdSettings(
        endpoints=tuple(server.netloc for server in servers),
        prefix=options.etcd_prefix.rstrip("/"),
        tls=servers[0].scheme == "https",
        ca_file=_absolute(options.etcd_cafile),
        certificate_file=_absolute(options.etcd_certfile),
        key_file=_absolute(options.etcd_keyfile),
        user=options.etcd_username,
        password_file=_absolute(options.etcd_password_file),
        compaction_seconds=options.etcd_compaction_interval,
    )


def problems(options: StorageOptions) -> list[Problem]:
    """Returns every mistake in the group."""
    found = [problem for server in options.etcd_servers for problem in _wrong_server(server)]
    if len({_split(server).scheme for server in options.etcd_servers}) > 1:
        found.append(Problem(_SERVERS, "some are http and some https: use one of them for all"))
    if options.storage_backend == "etcd3" and not options.etcd_servers:
        found.append(Problem("--storage-backend", "etcd3 needs to know where etcd is: give --etcd-servers"))
    if options.storage_backend == "sqlite" and options.etcd_servers:
        found.append(Problem(_SERVERS, "is of no use with --storage-backend=sqlite: leave one of them out"))
    if not options.etcd_prefix.startswith("/"):
        found.append(Problem("--etcd-prefix", f'"{options.etcd_prefix}" must begin with a slash'))
    found += _wrong_pairs(options)
    found += checks.positive("--event-ttl", options.event_ttl)
    for flag, path in (("cafile", options.etcd_cafile), ("certfile", options.etcd_certfile)):
        found += checks.readable_file(f"--etcd-{flag}", path)
    found += checks.readable_file("--etcd-keyfile", options.etcd_keyfile)
    return found + checks.readable_file("--etcd-password-file", options.etcd_password_file)


def _wrong_server(server: str) -> list[Problem]:
    split = _split(server)
    try:
        fits = split.scheme in _SCHEMES and split.hostname and split.port and not split.path.strip("/")
    except ValueError:
        fits = False
    if fits and "@" not in split.netloc:
        return []
    hint = "write http://HOST:PORT or https://HOST:PORT; user and password have options of their own"
    shown = split._replace(netloc=split.netloc.rpartition("@")[2]).geturl()
    return [Problem(_SERVERS, f'"{shown}" is no member of an etcd', hint)]


def _wrong_pairs(options: StorageOptions) -> list[Problem]:
    found = []
    if (options.etcd_certfile is None) != (options.etcd_keyfile is None):
        found.append(Problem("", "--etcd-certfile and --etcd-keyfile must be given together"))
    if bool(options.etcd_username) != bool(options.etcd_password_file):
        found.append(Problem("", "--etcd-username and --etcd-password-file must be given together"))
    return found


def _split(server: str) -> SplitResult:
    """Splits a URL; without a scheme it is one without TLS, as for etcdctl. A text that is no URL is only a path."""
    try:
        return urlsplit(server if "://" in server else f"http://{server}")
    except ValueError:
        return SplitResult("", "", server, "", "")


def _absolute(path: Path | None) -> Path | None:
    return Path.cwd() / path if path else None
