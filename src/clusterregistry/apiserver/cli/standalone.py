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

_log = logging.getLogger(__name__)


def _hooks(completed: CompletedOptions, product: Product) -> LifecycleHooks:
    from clusterregistry.apiserver.lifecycle import LifecycleHooks  # noqa: PLC0415 - keeps --help fast

    request = server.certificate_request(completed)
    return LifecycleHooks(
        prepare=lambda: _prepare(request),
        on_ready=lambda: _announce(completed, request, example=product.example),
        renew=lambda: _renew(request),
    )


def _prepare(request: CertificateRequest) -> None:
    server.print_provisioned(provision.provision(request))
    for warning in provision.leftovers(request):
        _log.warning(warning)


def _announce(completed: CompletedOptions, request: CertificateRequest, *, example: str) -> None:
    """Prints that the server is ready, and a kubectl command to try."""
    from clusterregistry.apimachinery.operator_error import CertificateError  # noqa: PLC0415

    try:
        server.print_provisioned(provision.refresh_kubeconfig(request))
    except CertificateError as error:  # no reason to stop serving
        _log.warning("%s: %s", error, error.remedy)
    say(f"Ready: {completed.server_url}", f"Try:   kubectl {_access_flags(completed, request)} {example}")


def _access_flags(completed: CompletedOptions, request: CertificateRequest) -> str:
    """Flags of kubectl: the administrator's kubeconfig, else those that a user has to fill in."""
    layout = completed.layout
    if request.administrator:
        return f"--kubeconfig {shlex.quote(str(layout.kubeconfig))}"
    authority = layout.server_ca if request.own is not None else layout.ca_certificate
    place = f"--server {completed.server_url} --certificate-authority {shlex.quote(str(authority))}"
    if completed.authentication.client_ca_file is not None:
        return f"{place} --client-certificate FILE --client-key FILE"
    return f"{place} --token TOKEN"


def _renew(request: CertificateRequest) -> None:
    """While serving: replaces certificates that expire soon, and brings the kubeconfig up to date."""
    for result in (provision.provision(request), provision.refresh_kubeconfig(request)):
        for made in result.made:
            _log.info("made %s", made)
        for warning in result.warnings:
            _log.warning(warning)


run = server.ServerCommand(name="standalone", aggregated=False, hooks=_hooks).run
