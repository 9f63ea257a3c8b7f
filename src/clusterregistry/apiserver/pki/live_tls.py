"""TLS that follows its files: certificates and authorities change without a restart.

The files are read every few seconds and compared by content, so that every way to exchange them is noticed: written
anew, renamed, or behind links that are switched over, as Kubernetes does with secrets. Connections stay as they are;
whoever connects next meets the new certificate.
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
"""How often the files are looked at."""

RENEW_SECONDS = 12 * 3600.0
"""How often the generated certificates are looked at: they are renewed three months before they end."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """What TLS is made of."""

    certificate: Path
    key: Path
    client_cas: tuple[Path, ...]
    """Authorities of users."""
    proxy_cas: tuple[Path, ...] = ()
    """Authorities of front proxies."""
    minimum: str
    suites: tuple[str, ...] = ()
    server_ca: Path | None = None
    """By which clients verify the certificate. It is no part of TLS here: only its changes are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherAuthorities:
    """Authorities that are in no file: somebody else keeps them, and says when they change. PEM."""

    origin: str = ""
    clients: str = ""
    proxies: str = ""

    def bundles(self) -> list[Bundle]:
        return [Bundle(Path(self.origin), pem) for pem in (self.clients, self.proxies) if pem]


@dataclass(frozen=True, slots=True)
class Loaded:
    """All of it as it was at one moment: what TLS verifies with is what authentication is told."""

    context: ssl.SSLContext
    client_cas: str
    proxy_cas: str


class LiveTls:
    """The newest state of the files that could be used. ``context`` is what a server listens with, all its life."""

    def __init__(self, names: TlsFiles) -> None:
        """Raises CertificateError: a server begins only with files that can be used."""
        self._names = names
        self._further = FurtherAuthorities()
        self._one_at_a_time = threading.Lock()
        self._digest = _digest(names)
        self.loaded = _load(names, self._further)
        self.context = self._listening_context()

    def trust_also(self, further: FurtherAuthorities) -> None:
        """Besides those in files, these authorities count from now on, and no others. ``loaded`` is new then.

        Raises CertificateError for what cannot be used; what was there before goes on then.
        """
        with self._one_at_a_time:
            self.loaded = _load(self._names, further)
            self._further = further

    def look(self) -> bool:
        """Looks at the files; true when there is something new in ``loaded``. Never raises.

        What is new and cannot be used is logged once, and what was there before goes on.
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
            if _digest(self._names) == digest:  # else they are being exchanged just now: the next look will tell
                self._digest = digest
                _log.error("%s: the former certificates stay in use. What to do: %s", error, error.remedy)
            return False
        self._digest = digest
        _log.info("certificates were exchanged: new connections use the new ones")
        return True

    def _listening_context(self) -> ssl.SSLContext:
        """A context cannot lose an authority, so each handshake is led over to the newest one."""
        context = _load(self._names, self._further).context

        def lead_over(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            connection.context = self.loaded.context

        context.sni_callback = lead_over  # called in every handshake, also when the client names no server
        return context


def _digest(names: TlsFiles) -> str:
    """One fingerprint of all that is in the files, or of why they cannot be read."""
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
    """Looks at the files for ever, in a thread since a disk may be slow. ``on_change`` is called in the loop.

    ``renew`` sees to the generated certificates now and then; what it writes is found as any other change. It is also
    called after a change: what clients are given to verify the server by follows the certificate.
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
        except Exception:  # noqa: BLE001 - whatever it is: the server goes on with what it has, and looks again
            _log.exception("certificates could not be looked at")


def _renew(renew: Callable[[], None]) -> None:
    try:
        renew()
    except CertificateError as error:
        _log.error("certificates could not be renewed: %s. What to do: %s", error, error.remedy)
