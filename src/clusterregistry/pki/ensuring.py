"""Makes what is missing, renews what ends soon, leaves the rest alone.

A start that finds everything in order reads a few small files, compares digests with the record, and writes nothing.
Every file is replaced in one step, keys before certificates; a crash in between leaves a key without a certificate,
which the next start completes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.pki import files, kubeconfig, records
from clusterregistry.pki.layout import Layout
from clusterregistry.pki.records import Record
from clusterregistry.pki.store import Store

DAY = 86400.0
WARN_CA = 180 * DAY


@dataclass(frozen=True, slots=True)
class Ensured:
    """What was done. ``made`` is for people, one line each; empty when everything was there."""

    made: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a server needs. ``names`` are those by which clients reach it; ``own_certificate`` is the operator's."""

    layout: Layout
    server_url: str
    names: tuple[str, ...]
    own_certificate: Path | None = None
    administrator: bool = True
    """Whether to make a client certificate and a kubeconfig of an administrator."""


def ensure(wanted: Wanted, clock: Callable[[], float] = time.time) -> Ensured:
    """Sees to the CA, the certificates and, when there is none, the kubeconfig. Idempotent.

    Raises CertificateError, and nothing else, for what is damaged, foreign, or cannot be written.
    """
    if wanted.own_certificate is not None and not wanted.administrator:
        return Ensured()
    layout = wanted.layout
    store = _store(wanted, clock)
    if not store.in_order(_serving_names(wanted)) or _lacks_kubeconfig(wanted):
        with files.exclusive(layout):
            store = _store(wanted, clock)
            store.ensure_all(_serving_names(wanted))
            if _lacks_kubeconfig(wanted):
                store.record_kubeconfig(_write_kubeconfig(wanted))
                store.made.append(f"{layout.kubeconfig} (kubeconfig of the administrator)")
            records.save(layout.record, store.record)
    return Ensured(tuple(store.made), (*_warnings(layout), *_ca_warning(store)))


def _store(wanted: Wanted, clock: Callable[[], float]) -> Store:
    layout = wanted.layout
    return Store(layout, records.load(layout.record), now=clock(), administrator=wanted.administrator)


def _lacks_kubeconfig(wanted: Wanted) -> bool:
    return wanted.administrator and files.read(wanted.layout.kubeconfig) is None


def refresh_kubeconfig(wanted: Wanted) -> Ensured:
    """Brings our kubeconfig up to date with the address and the certificate; one that was edited is left alone.

    For a server that is listening: before that, a second server that cannot start would spoil the first one's file.
    """
    layout = wanted.layout
    held, fresh = files.read(layout.kubeconfig), _rendered(wanted)
    if held == fresh:
        return Ensured()
    record = records.load(layout.record)
    if held is not None and files.digest(held) != record.kubeconfig:
        certificate = files.read(layout.admin_certificate) or b""
        if kubeconfig.speaks_of(held, server_url=wanted.server_url, certificate=certificate):
            return Ensured()
        warning = f"{layout.kubeconfig} was edited and does not lead to this server: remove it to get a new one"
        return Ensured(warnings=(warning,))
    with files.exclusive(layout):
        digest = _write_kubeconfig(wanted)
        records.save(layout.record, Record(record.facts, digest))
    return Ensured(made=(f"{layout.kubeconfig} (now for {wanted.server_url})",))


def _serving_names(wanted: Wanted) -> tuple[str, ...] | None:
    return None if wanted.own_certificate else wanted.names


def _write_kubeconfig(wanted: Wanted) -> str:
    content = _rendered(wanted)
    files.write(wanted.layout.kubeconfig, content, mode=files.SECRET)
    return files.digest(content)


def _rendered(wanted: Wanted) -> bytes:
    layout = wanted.layout
    authorities = files.read(layout.ca_certificate) or b""
    if wanted.own_certificate is not None:
        # Whoever signed the operator's certificate is not known here; the certificate itself is trusted then.
        authorities += files.read(wanted.own_certificate) or b""
    return kubeconfig.render(
        server_url=wanted.server_url,
        authorities=authorities,
        certificate=files.read(layout.admin_certificate) or b"",
        key=files.read(layout.admin_key) or b"",
    )


def _warnings(layout: Layout) -> list[str]:
    secrets = (layout.ca_key, layout.serving_key, layout.admin_key, layout.kubeconfig)
    return [f"{path} is open to other users: chmod 600 it" for path in secrets if files.open_to_others(path)]


def _ca_warning(store: Store) -> list[str]:
    left = store.record.facts["ca"].not_after - store.now
    return [f"the CA ends in {left / DAY:.0f} days: plan for a new one"] if left < WARN_CA else []
