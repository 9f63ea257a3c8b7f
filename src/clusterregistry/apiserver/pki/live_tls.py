"""Reloads certificates and authorities from their files without a restart.

The files are read every few seconds and compared by content, so that every kind of replacement is detected: a write, a
rename, or a switched symlink, as with Secrets of Kubernetes. Only new connections use them.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.pki import files
from clusterregistry.apiserver.pki.tls import Bundle, read_bundle, server_context

LOOK_SECONDS = 3.0
"""Time between two reads of the files."""

RENEW_SECONDS = 12 * 3600.0
"""Time between two checks of the generated certificates, which are renewed three months before they end."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The files and settings of the TLS context."""

    certificate: Path
    key: Path
    client_cas: tuple[Path, ...]
    """Authorities of users."""
    proxy_cas: tuple[Path, ...] = ()
    """Authorities of front proxies."""
    minimum: str
    suites: tuple[str, ...] = ()
    server_ca: Path | None = None
    """The authorities by which clients verify the certificate. Not a part of TLS here: only changes are reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherAuthorities:
    """Authorities from another source than files, as PEM: those of the host cluster."""

    origin: str = ""
    clients: str = ""
    proxies: str = ""

    def bundles(self) -> list[Bundle]:
        return [Bundle(Path(self.origin), pem) for pem in (self.clients, self.proxies) if pem]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A consistent state of all files: TLS and authentication use the same authorities."""

    context: ssl.SSLContext
    client_cas: str
    proxy_cas: str


class LiveTls:
    """The newest valid state of the files. ``context`` is the one that a server listens with, all its life."""

    def __init__(self, names: TlsFiles) -> None:
        """Raises CertificateError: a server starts only with valid files."""
        self._names = names
        self._further = FurtherAuthorities()
        self._one_at_a_time = threading.Lock()
        self._digest = _digest(names)
        self.loaded = _load(names, self._further)
        self.context = self._listening_context()

    def trust_also(self, further: FurtherAuthorities) -> None:
        """Replaces the further authorities, those from no file. Sets ``loaded`` anew.

        Raises CertificateError for invalid ones; then the former ones stay.
        """
        with self._one_at_a_time:
            self.loaded = _load(self._names, further)
            self._further = further

    def look(self) -> bool:
        """Reads the files; True if ``loaded`` is new. Never raises.

        An error in new files is logged once, and the former state stays in use.
        """
        with self._one_at_a_time:
            return self._look()

    def _look(self) -> bool:
        digest = _digest(self._names)
        if digest == self._digest:
            return False
        try:
            self.loaded = _load(self._names, self._further)
        except CertificateError as error:
            if _digest(self._names) == digest:  # else they are just being replaced: the next look decides
                self._digest = digest
                _log.error("%s: the former certificates stay in use. What to do: %s", error, error.remedy)
            return False
        self._digest = digest
        _log.info("certificates were replaced: new connections use the new ones")
        return True

    def _listening_context(self) -> ssl.SSLContext:
        """An SSLContext cannot drop an authority, so each handshake switches to the newest context."""
        context = _load(self._names, self._further).context

        def use_newest(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            connection.context = self.loaded.context

        context.sni_callback = use_newest  # called in every handshake, also when the client names no server
        return context


def _digest(names: TlsFiles) -> str:
    """One fingerprint of the content of all files, or of the error."""
    try:
        named = (names.certificate, names.key, *names.client_cas, *names.proxy_cas)
        return files.digest(*map(files.read, (*named, *((names.server_ca,) if names.server_ca else ()))))
    except CertificateError as error:
        return str(error)


def _load(names: TlsFiles, further: FurtherAuthorities) -> Loaded:
    client_cas, proxy_cas = [*map(read_bundle, names.client_cas)], [*map(read_bundle, names.proxy_cas)]
    context = server_context(
        certificate=names.certificate,
        key=names.key,
        client_cas=[*client_cas, *proxy_cas, *further.bundles()],
        minimum=names.minimum,
        suites=names.suites,
    )
    return Loaded(context, _joined(client_cas, further.clients), _joined(proxy_cas, further.proxies))


def _joined(bundles: list[Bundle], further: str) -> str:
    return "\n".join([*(bundle.pem for bundle in bundles), *filter(None, [further])])


async def keep_current(
    live: LiveTls,
    *,
    renew: Callable[[], None],
    on_change: Callable[[Loaded], None],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Reloads the files again and again, in a thread since a disk may be slow. Calls ``on_change`` in the loop.

    Calls ``renew`` every RENEW_SECONDS to renew the generated certificates, which are then detected as changed files;
    and after each change, since the authorities that clients get depend on the certificate.
    """
    until_renewal = RENEW_SECONDS
    while True:
        await sleep(LOOK_SECONDS)
        until_renewal -= LOOK_SECONDS
        try:
            if until_renewal <= 0:
                until_renewal = RENEW_SECONDS
                await asyncio.to_thread(_renew, renew)
            if await asyncio.to_thread(live.look):
                on_change(live.loaded)
                await asyncio.to_thread(_renew, renew)
        except Exception:  # noqa: BLE001 - the server keeps its certificates and tries again
            _log.exception("certificates could not be reloaded")


def _renew(renew: Callable[[], None]) -> None:
    try:
        renew()
    except CertificateError as error:
        _log.error("certificates could not be renewed: %s. What to do: %s", error, error.remedy)
