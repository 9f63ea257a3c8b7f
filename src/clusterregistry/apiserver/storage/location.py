"""The locations of stores as an operator writes them: ``sqlite:FILE``, ``etcd:HOST:PORT,...``.

The only module that knows the engines by name. An engine is imported when a location needs it: copying from one SQLite
file to another does not load etcd's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from clusterregistry.apiserver.storage.interface import Storage

DATABASE = "registry.db"
"""The name of the server's database in its data directory."""

_SHAPES = "write sqlite:FILE or etcd:HOST:PORT,HOST:PORT"
_ETCD_PORT = 2379


@dataclass(frozen=True, slots=True)
class SQLiteLocation:
    """A database file."""

    path: Path

    def __str__(self) -> str:
        return f"sqlite:{self.path}"


@dataclass(frozen=True, slots=True)
class EtcdLocation:
    """The keys under a prefix of an etcd cluster."""

    settings: EtcdSettings

    @property
    def servers(self) -> tuple[str, ...]:
        """The members as URLs, in the form of ``--etcd-servers``."""
        scheme = "https" if self.settings.tls else "http"
        return tuple(f"{scheme}://{endpoint}" for endpoint in self.settings.endpoints)

    def __str__(self) -> str:
        return "etcd:" + ",".join(self.servers)


Location = SQLiteLocation | EtcdLocation


def parse(text: str) -> Location:
    """Parses a location. Raises ValueError with a message for the operator."""
    engine, colon, rest = text.partition(":")
    if not colon or engine not in {"sqlite", "etcd"}:
        raise ValueError(f'"{text}" is not a place: {_SHAPES}')
    if not rest.strip() or "\0" in rest:
        raise ValueError(f'"{text}" names nothing behind "{engine}:": {_SHAPES}')
    return _sqlite(rest) if engine == "sqlite" else _etcd(rest)


async def open_location(location: Location) -> Storage:
    """Opens the store at a location; creates an SQLite file if there is none. Raises StorageUnavailable."""
    if isinstance(location, SQLiteLocation):
        from clusterregistry.apiserver.storage.sqlite import SQLiteStorage  # noqa: PLC0415

        return await SQLiteStorage.open(location.path)
    from clusterregistry.apiserver.storage.etcd.store import EtcdStorage  # noqa: PLC0415 - takes time to import

    return await EtcdStorage.open(location.settings)


def _sqlite(text: str) -> SQLiteLocation:
    try:
        path = Path(text).expanduser().absolute()
    except RuntimeError:
        raise ValueError(f'the home directory in "{text}" is not known') from None
    if path.is_dir():
        raise ValueError(f"{path} is a directory: name the file in it, such as sqlite:{path / DATABASE}")
    return SQLiteLocation(path)


def _etcd(text: str) -> EtcdLocation:
    members = [_member(each.strip()) for each in text.split(",")]
    if len({scheme for scheme, _ in members}) > 1:
        raise ValueError(f'"{text}" mixes endpoints with TLS (https) and without (http): give all of them the same')
    endpoints = tuple(endpoint for _, endpoint in members)
    return EtcdLocation(EtcdSettings(endpoints=endpoints, tls=members[0][0] == "https"))


def _member(text: str) -> tuple[str, str]:
    """The scheme and HOST:PORT of one endpoint."""
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        host, port = parts.hostname, parts.port or _ETCD_PORT
    except ValueError:
        host = None
    if parts.scheme not in {"http", "https"} or not host or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(f'"{text}" is not an endpoint of etcd: write one like 10.0.0.1:2379 or https://etcd-1:2379')
    if parts.username is not None:
        raise ValueError("an endpoint must not hold a user or a password: other users of this machine would see it")
    return parts.scheme, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
