"""Provides the certificates of the server: makes what is missing, renews what ends soon, changes nothing else.

``provision`` is for the start and for renewals, ``refresh_kubeconfig`` for a server that is listening.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.pki import files, kubeconfig, own_certificate
from clusterregistry.apiserver.pki.certificate_store import RENEW_BEFORE, ServingNames, Store
from clusterregistry.apiserver.pki.files import Layout, Record
from clusterregistry.apiserver.pki.own_certificate import OwnCertificate

DAY = 86400.0
WARN_CA = 180 * DAY


@dataclass(frozen=True, slots=True)
class ProvisionResult:
    """What was done. ``made`` is for people, one line each; empty when everything was there."""

    made: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRequest:
    """What a server needs. ``names`` are those by which clients reach it; ``own`` is the operator's certificate."""

    program: str = "apiserver"
    """The program after which the authority, the certificate and the kubeconfig are named."""
    layout: Layout
    server_url: str
    names: tuple[str, ...]
    further_names: tuple[str, ...] = ()
    """Names that the operator asked for: others than before are a reason to renew."""
    own: OwnCertificate | None = None
    administrator: bool = True
    """Whether to make a client certificate and a kubeconfig of an administrator."""
    server_ca: bool = True
    """Whether to write what clients verify ``own`` by."""


def provision(request: CertificateRequest, clock: Callable[[], float] = time.time) -> ProvisionResult:
    """Sees to the CA, the certificates and, when there is none, the kubeconfig. Idempotent.

    Raises CertificateError, and nothing else, for what is damaged, foreign, or cannot be written.
    """
    made: list[str] = []
    warnings: list[str] = []
    if request.own is None or request.administrator:
        store = _ensured_certificates(request, clock)
        made += store.made
        warnings += (*_warnings(request.layout), *_ca_warning(store), *_lost_key_warning(store))
    if request.own is not None and request.server_ca:
        made_server_ca = _ensure_server_ca(request, request.own)
        made += made_server_ca.made
        warnings += made_server_ca.warnings
    if request.administrator and files.read(request.layout.kubeconfig) is None:
        _write_kubeconfig(request)
        made.append(f"{request.layout.kubeconfig} (kubeconfig of the administrator)")
    return ProvisionResult(tuple(made), tuple(warnings))


def _ensured_certificates(request: CertificateRequest, clock: Callable[[], float]) -> Store:
    layout = request.layout
    store = _store(request, clock)
    if not store.in_order():
        with files.exclusive(layout):
            store = _store(request, clock)
            store.ensure_all()
            files.save(layout.record, store.record)
    _keep_server_ca(request)
    return store


def _store(request: CertificateRequest, clock: Callable[[], float]) -> Store:
    layout = request.layout
    return Store(
        layout,
        files.load(layout.record),
        now=clock(),
        serving=None if request.own else ServingNames(request.names, request.further_names),
        administrator=request.administrator,
        program=request.program,
    )


# What clients verify the server by


def _ensure_server_ca(request: CertificateRequest, own: OwnCertificate) -> ProvisionResult:
    """Writes the authorities of the operator's certificate, when they are others than before."""
    path, authorities = request.layout.server_ca, own_certificate.server_authorities(own)
    warnings = authorities.warnings
    if authorities.until_renewal and request.administrator:
        warnings = (*warnings, _copies_break(own))
    if files.read(path) == authorities.pem:
        return ProvisionResult(warnings=warnings)
    try:
        files.make_directory(path.parent)
        files.write(path, authorities.pem, mode=files.PUBLIC)
    except CertificateError as error:
        if request.administrator:
            raise
        # A server that keeps nothing on disk can do without.
        return ProvisionResult(warnings=(*warnings, f"{error}: {error.remedy}"))
    return ProvisionResult((f"{path} (what clients verify this server by)",), warnings)


def _keep_server_ca(request: CertificateRequest) -> None:
    """Once the operator's certificate is gone, what was handed out for it is the authority that counts now."""
    held = files.read(request.layout.server_ca)
    if request.own is not None or held is None:
        return
    authority = files.read(request.layout.ca_certificate) or b""
    if held != authority:
        files.write(request.layout.server_ca, authority, mode=files.PUBLIC)


def _authorities(request: CertificateRequest) -> bytes:
    layout = request.layout
    return files.read(layout.server_ca if request.own is not None else layout.ca_certificate) or b""


# The kubeconfig


def refresh_kubeconfig(request: CertificateRequest) -> ProvisionResult:
    """Brings our kubeconfig up to date with address, certificate and authorities; an edited one is left alone.

    For a server that is listening: before that, a second server that cannot start would spoil the first one's file.
    """
    if not request.administrator:
        return ProvisionResult()
    layout = request.layout
    held = files.read(layout.kubeconfig)
    if held == _rendered(request):
        return ProvisionResult()
    if held is not None and files.digest(held) != files.load(layout.record).kubeconfig:
        if _leads_here(held, request):
            return ProvisionResult()
        warning = f"{layout.kubeconfig} was edited and does not lead to this server: remove it to get a new one"
        return ProvisionResult(warnings=(warning,))
    _write_kubeconfig(request)
    return ProvisionResult(made=(f"{layout.kubeconfig} (brought up to date, for {request.server_url})",))


def _leads_here(held: bytes, request: CertificateRequest) -> bool:
    """Whether a kubeconfig that somebody edited has our address and certificate, and trusts the server."""
    certificate = files.read(request.layout.admin_certificate) or b""
    if not kubeconfig.speaks_of(held, server_url=request.server_url, certificate=certificate):
        return False
    trusted = kubeconfig.authorities_in(held)
    if request.own is None or not trusted:  # without any, those of the client's machine count
        return True
    own = request.own
    return any(own_certificate.verifies(own, each) for each in trusted)


def _write_kubeconfig(request: CertificateRequest) -> None:
    layout, content = request.layout, _rendered(request)
    with files.exclusive(layout):
        files.write(layout.kubeconfig, content, mode=files.SECRET)
        files.save(layout.record, Record(files.load(layout.record).facts, files.digest(content)))


def _rendered(request: CertificateRequest) -> bytes:
    layout = request.layout
    return kubeconfig.render(
        program=request.program,
        server_url=request.server_url,
        authorities=_authorities(request),
        certificate=files.read(layout.admin_certificate) or b"",
        key=files.read(layout.admin_key) or b"",
    )


# What an operator should know


def _copies_break(own: OwnCertificate) -> str:
    return (
        f"the authority that signed {own.certificate} is not known: admin.kubeconfig trusts the certificate itself, "
        "and every copy of it breaks when the certificate is renewed. Name the authority with --tls-ca-file"
    )


def leftovers(request: CertificateRequest) -> tuple[str, ...]:
    """A warning for files of an authority or an administrator that a server with neither finds."""
    layout = request.layout
    authority = (layout.ca_key, layout.ca_certificate) if request.own is not None else ()
    administrator = (layout.admin_key, layout.admin_certificate, layout.kubeconfig)
    found = [str(path) for path in (*authority, *administrator) if path.exists()]
    if request.administrator or not found:
        return ()
    warning = (
        f"no longer used, and no longer accepted: {', '.join(found)}. This server makes no administrator "
        "(--generate-admin is false, which is the default with --client-ca-file and --tls-cert-file). Remove these "
        "files, or give --generate-admin=true to go on with them"
    )
    return (warning,)


def _warnings(layout: Layout) -> list[str]:
    secrets = (layout.ca_key, layout.serving_key, layout.admin_key, layout.kubeconfig)
    return [f"{path} is open to other users: chmod 600 it" for path in secrets if files.open_to_others(path)]


def _ca_warning(store: Store) -> list[str]:
    left = store.record.facts["ca"].not_after - store.now
    return [f"the CA ends in {left / DAY:.0f} days: plan for a new one"] if left < WARN_CA else []


def _lost_key_warning(store: Store) -> list[str]:
    if files.read(store.layout.ca_key) is not None:
        return []
    end = store.first_end()
    warning = (
        f"{store.layout.ca_key} is missing: nothing can be signed or renewed. A server that runs goes on until "
        f"{_day(end)}, when its certificates end; from {_day(end - RENEW_BEFORE)} on none starts. What to do: "
        f"{store.ca_remedy}"
    )
    return [warning]


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


# Names of the server

ALWAYS = ("localhost", "127.0.0.1", "::1")
_DNS_NAME = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*", re.ASCII)


def serving_names(*addresses: str, host_name: str | None = None) -> tuple[str, ...]:
    """Loopback, the host name and the given addresses, each once. "All interfaces" is no name of a server."""
    own = (host_name if host_name is not None else socket.gethostname()).lower()
    return normal_names(*ALWAYS, own, *addresses)


def normal_names(*names: str) -> tuple[str, ...]:
    """Names and addresses as a certificate has them, each once, without those that it cannot have."""
    return tuple(dict.fromkeys(name for name in map(_normal, names) if name))


def _normal(name: str) -> str:
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        lowered = name.lower()
        return lowered if len(lowered) <= 253 and _DNS_NAME.fullmatch(lowered) else ""  # noqa: PLR2004 - DNS's limit
    return "" if address.is_unspecified else str(address)
