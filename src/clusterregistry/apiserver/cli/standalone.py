"""``standalone``: the server on its own, with certificates and an administrator of its own."""

from __future__ import annotations

import logging
import shlex
from typing import TYPE_CHECKING

from clusterregistry.apiserver.cli import server
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.pki import provision
from clusterregistry.apiserver.pki.provision import CertificateRequest
from clusterregistry.apiserver.product import Product
from clusterregistry.cli.console import say

if TYPE_CHECKING:
    from clusterregistry.apiserver.lifecycle import LifecycleHooks

log = logging.getLogger(__name__)


def _hooks(completed: CompletedOptions, product: Product) -> LifecycleHooks:
    from clusterregistry.apiserver.lifecycle import LifecycleHooks  # noqa: PLC0415 - keeps --help fast

    wanted = server.wanted(completed)
    return LifecycleHooks(
        prepare=lambda: _prepare(wanted),
        on_ready=lambda: _announce(completed, wanted, example=product.example),
        renew=lambda: _renew(wanted),
    )


def _prepare(wanted: CertificateRequest) -> None:
    server.tell(provision.provision(wanted))
    for warning in provision.leftovers(wanted):
        log.warning(warning)


def _announce(completed: CompletedOptions, wanted: CertificateRequest, *, example: str) -> None:
    """Called when the server is ready: says so, and what to type next."""
    from clusterregistry.apimachinery.operator_error import CertificateError  # noqa: PLC0415

    try:
        server.tell(provision.refresh_kubeconfig(wanted))
    except CertificateError as error:  # no reason to stop serving
        log.warning("%s: %s", error, error.remedy)
    say(f"Ready: {completed.server_url}", f"Try:   kubectl {_access(completed, wanted)} {example}")


def _access(completed: CompletedOptions, wanted: CertificateRequest) -> str:
    """Flags of kubectl: the administrator's kubeconfig, else what a user of the operator's has to fill in."""
    layout = completed.layout
    if wanted.administrator:
        return f"--kubeconfig {shlex.quote(str(layout.kubeconfig))}"
    authority = layout.server_ca if wanted.own is not None else layout.ca_certificate
    place = f"--server {completed.server_url} --certificate-authority {shlex.quote(str(authority))}"
    if completed.authentication.client_ca_file is not None:
        return f"{place} --client-certificate FILE --client-key FILE"
    return f"{place} --token TOKEN"


def _renew(wanted: CertificateRequest) -> None:
    """While serving: makes new certificates for those that end soon, and has the kubeconfig follow them."""
    for ensured in (provision.provision(wanted), provision.refresh_kubeconfig(wanted)):
        for made in ensured.made:
            log.info("made %s", made)
        for warning in ensured.warnings:
            log.warning(warning)


run = server.ServerCommand(name="standalone", aggregated=False, hooks=_hooks).run
