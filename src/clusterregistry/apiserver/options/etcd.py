"""The options about etcd together: what is wrong with them, and what they amount to."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from clusterregistry.apiserver.options import checks
from clusterregistry.apiserver.options.storage import StorageOptions
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from clusterregistry.cli.options.problems import Problem

ETCD = "etcd3"
_SERVERS = "--etcd-servers"
_SCHEMES = ("http", "https")


def settings(options: StorageOptions) -> EtcdSettings | None:
    """How to reach etcd; None when it is not to be used. For options without problems."""
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
    """Everything that is wrong with them."""
    found = [problem for server in options.etcd_servers for problem in _wrong_server(server)]
    if len({_split(server).scheme for server in options.etcd_servers}) > 1:
        found.append(Problem(_SERVERS, "some are http and some https: use one of them for all"))
    if options.storage_backend == ETCD and not options.etcd_servers:
        found.append(Problem("--storage-backend", "etcd3 needs to know where etcd is: give --etcd-servers"))
    if options.storage_backend == "sqlite" and options.etcd_servers:
        found.append(Problem(_SERVERS, "is of no use with --storage-backend=sqlite: leave one of them out"))
    if not options.etcd_prefix.startswith("/"):
        found.append(Problem("--etcd-prefix", f'"{options.etcd_prefix}" must begin with a slash'))
    found += _wrong_pairs(options)
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
    """A member without a scheme is one without TLS, as etcdctl has it. What cannot be split has nothing but a path."""
    try:
        return urlsplit(server if "://" in server else f"http://{server}")
    except ValueError:
        return SplitResult("", "", server, "", "")


def _absolute(path: Path | None) -> Path | None:
    return Path.cwd() / path if path else None
